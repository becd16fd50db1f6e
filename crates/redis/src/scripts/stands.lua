-- Takes note of one who waits.
--
-- ARGV: id, age (ms), how long this is to be believed (ms), what is wanted, label
insist_on_all()
local waits = 'leasehold_waits:' .. tag
local text = string.format('%.0f %.0f %s %s', now + ARGV[3], now - ARGV[2], ARGV[4], ARGV[5])
redis.call('hset', waits, ARGV[1], text)
redis.call('pexpire', waits, ARGV[3])
return 1
