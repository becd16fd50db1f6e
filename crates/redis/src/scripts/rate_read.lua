-- Reads a rate, or removes the limiter.
--
-- ARGV: client, step ('read', 'remove'). Answers {'has', free, rate, interval, type, keep-alive time}, or 1 if it is
-- removed, or {'unset'}, or {'other', kind, number}.
local found = other()
if found then
  return found
elseif not (rate and interval and rate_of[3]) then
  return { 'unset' }
end
if ARGV[2] == 'remove' then
  redis.call('del', name, free_key, taken, tag .. ':value', tag .. ':permits')
  return 1
end
local free = free_now()
keep_alive()
return { 'has', free, rate_of[1], rate_of[2], rate_of[3], tostring(keep) }
