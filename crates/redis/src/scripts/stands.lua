-- Takes note of one who waits. Of very many notes, those that nobody keeps up any more go: whoever died leaves one, and
-- while anybody waits the rest of them does not expire.
--
-- ARGV: id, age (ms), how long this is to be believed (ms), what is wanted, label
insist_on_all()
local waits = 'leasehold_waits:' .. tag
local text = string.format('%.0f %.0f %s %s', now + ARGV[3], now - ARGV[2], ARGV[4], ARGV[5])
redis.call('hset', waits, ARGV[1], text)
redis.call('pexpire', waits, ARGV[3])
if redis.call('hlen', waits) > 256 then
  local told = redis.call('hscan', waits, 0, 'COUNT', 256)[2]
  for at = 1, #told, 2 do
    if (tonumber(string.match(told[at + 1], '^%d+')) or 0) <= now then
      redis.call('hdel', waits, told[at])
    end
  end
end
return 1
