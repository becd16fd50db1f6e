-- Takes permits of a rate, all or none.
--
-- ARGV: client, permits, sixteen bytes. Those are made from the acquisition's id, not drawn by chance as Redisson's are:
-- so a request that arrives twice is found to have been there, for as long as it counts.
-- Answers 0 if they are taken; how long until asking again can help (ms, at least 1); {'many', rate} if the rate never
-- allows so many; {'unset'}; {'other', kind, number}.
local permits, id = tonumber(ARGV[2]), ARGV[3]
local found = other()
if found then
  return found
elseif not (rate and interval and rate_of[3]) then
  return { 'unset' }
elseif permits > rate then
  return { 'many', rate_of[1] }
end
local member = struct.pack('Bc0I', #id, id, permits)
local free, answer = free_now(), 0
if free >= permits then
  if redis.call('zadd', taken, 'NX', string.format('%.0f', now), member) == 1 then
    redis.call('decrby', free_key, ARGV[2])
  end
elseif not redis.call('zscore', taken, member) then
  answer = back_in(permits - free)
end
keep_alive()
return answer
