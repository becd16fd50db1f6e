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
  -- A request of this acquisition may still be on its way; it must find that it is over. Those whose time is up go, or a
  -- name that loses an answer now and then would keep them all. Removing first makes this a write that a full server takes.
  local late = 'leasehold_late:' .. tag
  redis.call('zrem', late, id, unpack(redis.call('zrangebyscore', late, 0, now, 'limit', 0, 1000)))
  redis.call('zadd', late, now + barrier, id)
  redis.call('pexpire', late, barrier)
end
if found then
  return 1
end
return { 'gone', redis.call('hget', 'leasehold_broken:' .. tag, id) }
