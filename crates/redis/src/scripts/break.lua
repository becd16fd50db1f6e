-- Takes one acquisition out by force: the fence moves on, the holder will find the mark, those who wait are woken.
--
-- ARGV: id, verb, permits, mark. Answers 1, or 0 if it does not hold the name.
local id, verb, permits, mark = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if not remove(verb, id, permits) then
  return 0
end
local fences = 'leasehold_fence:' .. tag
local fence = math.max(time[1] * 1000000 + time[2], (tonumber(redis.call('get', fences) or 0) or 0) + 1)
redis.call('set', fences, string.format('%.0f', fence), 'PX', 172800000)
redis.call('hset', 'leasehold_broken:' .. tag, id, mark)
redis.call('pexpire', 'leasehold_broken:' .. tag, 86400000)
return 1
