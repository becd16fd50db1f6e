-- The server's time in milliseconds: expiry and order are decided by no other clock.
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
