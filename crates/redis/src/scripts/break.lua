-- Takes one acquisition out by force: the fence moves on, the holder is told and will find the mark, those who wait are
-- woken.
--
-- ARGV: id, verb, permits, mark, and where its client listens for what. Answers 1, or 0 if it does not hold the name. Whoever asks again because
-- no answer came finds the mark, and is answered as the first time.
local id, verb, permits, mark, channel, word = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
insist_on_all()
if not remove(verb, id, permits) then
  return redis.call('hget', 'leasehold_broken:' .. tag, id) == mark and 1 or 0
end
next_fence('172800000', 0)
redis.call('hset', 'leasehold_broken:' .. tag, id, mark)
redis.call('pexpire', 'leasehold_broken:' .. tag, 86400000)
-- Told or not, it is broken: one who may not tell has broken it all the same.
redis.pcall('publish', channel, word)
return 1
