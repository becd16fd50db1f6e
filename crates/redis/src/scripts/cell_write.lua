-- Writes a cell if it is as expected.
--
-- KEYS: cell, index. ARGV: expected version ('' for absent), value, ttl (ms, 0 for none), name
-- Answers the new version as text, or nothing.
local version = redis.call('hget', KEYS[1], 'version')
if (version or '') ~= ARGV[1] then
  return false
end
local time = redis.call('time')
local next = string.format('%.0f', math.max(time[1] * 1000000 + time[2], (tonumber(version or 0) or 0) + 1))
redis.call('hset', KEYS[1], 'version', next, 'value', ARGV[2])
if ARGV[3] == '0' then
  redis.call('persist', KEYS[1])
else
  redis.call('pexpire', KEYS[1], ARGV[3])
end
if string.sub(ARGV[4], 1, 8) == 'history:' then
  -- The history is of as many names as there ever are, and is read by name alone: only a listing takes what is gone out
  -- of the index, and nobody lists these.
  redis.call('zrem', KEYS[2], ARGV[4])
else
  redis.call('zadd', KEYS[2], 0, ARGV[4])
end
return next
