-- Sets a rate.
--
-- ARGV: client, step ('set', 'try'), rate, interval (ms), type (0 for all, 1 for each), keep-alive time (ms, 0 for ever).
-- Answers 1, or {'kept', rate, interval, type, keep-alive time}, or {'other', kind, number}.
local found = other()
if found then
  return found
end
if ARGV[2] == 'try' and rate and interval and rate_of[3] then
  return { 'kept', rate_of[1], rate_of[2], rate_of[3], tostring(keep) }
end
if redis.call('type', name).ok == 'string' then
  clear_idle()
end
redis.call('hset', name, 'rate', ARGV[3], 'interval', ARGV[4], 'type', ARGV[5], 'keepAliveTime', ARGV[6])
if ARGV[6] == '0' then
  redis.call('persist', name)
else
  redis.call('pexpire', name, ARGV[6])
end
-- Of both types: the one before may have been the other.
for _, own in ipairs({ '', ':' .. ARGV[1] }) do
  redis.call('del', tag .. ':value' .. own, tag .. ':permits' .. own)
end
return 1
