local permits, barrier, told = ARGV[4], tonumber(ARGV[5]), ARGV[7]
insist_on_all()
local found = remove(verb, id, permits)
if told == '1' then
  redis.call('hdel', 'leasehold_waits:' .. tag, id)
end
if ARGV[6] == 'leave' then
  local first = redis.call('lindex', queue, 0) == id
  if leave(id) then
    found = true
    -- The next one may have been waiting for us only.
    if first then
      wake(verb, permits ~= '' and 'redisson_sc:' .. tag or lock_channel, permits ~= '' and '1' or '0')
    end
  end
end
if barrier > 0 then
  -- A request of this acquisition may still be on its way; it must find that it is over. Deleting first makes this a
  -- write that a full server takes.
  redis.call('hdel', 'leasehold_late:' .. tag, id)
  redis.call('hset', 'leasehold_late:' .. tag, id, 1)
  redis.call('pexpire', 'leasehold_late:' .. tag, barrier)
end
if found then
  return 1
end
return { 'gone', redis.call('hget', 'leasehold_broken:' .. tag, id) }
