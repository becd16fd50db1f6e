-- A rate limiter, on the layout of Redisson's: a hash with the rate, a number with what is free, and a sorted set of
-- what was taken, one member for each taking: a length byte (16), sixteen bytes that tell takings apart, and the permits
-- as 32 bits in the server's byte order; its score is when. Redisson takes that time from the client; we take it from
-- the server, so clients of ours need no common clock.
--
-- ARGV[1] is the client, for rates that are for each.
insist_on_all()
local rate_of = redis.pcall('hmget', name, 'rate', 'interval', 'type', 'keepAliveTime')
local rate, interval = tonumber(rate_of[1] or nil), tonumber(rate_of[2] or nil)
local keep = tonumber(rate_of[4] or nil) or 0
local each = rate_of[3] == '1'
local own = each and ':' .. ARGV[1] or ''
local free_key, taken = tag .. ':value' .. own, tag .. ':permits' .. own

-- What the name is in use as, if that is no limiter; nothing if it is one, or free to become one.
local function other()
  if rate and interval and rate_of[3] then
    return nil
  end
  local kind, number = kind_of()
  if kind == 'idle' or kind == 'none' or kind == 'limiter' then
    return nil
  end
  return { 'other', kind, number }
end

-- The permits of one taking: the last four bytes, in this and in all older layouts.
local function permits_of(member)
  return #member >= 4 and struct.unpack('I', string.sub(member, -4)) or 0
end

-- Forgets takings that count no more; says how many permits that were.
local function expire()
  local back, old = 0, nil
  repeat
    old = redis.call('zrangebyscore', taken, '-inf', now - interval, 'limit', 0, 1000)
    for _, member in ipairs(old) do
      back = back + permits_of(member)
    end
    if #old > 0 then
      redis.call('zremrangebyrank', taken, 0, #old - 1)
    end
  until #old < 1000
  return back
end

-- The permits that still count.
local function counted()
  local sum = 0
  for _, member in ipairs(redis.call('zrange', taken, 0, -1)) do
    sum = sum + permits_of(member)
  end
  return sum
end

-- How many can be taken now. The number is kept as Redisson keeps it; where it cannot be true (it is missing, there
-- would be more than the rate, or nothing was taken and it is less) the takings decide.
local function free_now()
  local free, back = tonumber(redis.call('get', free_key) or nil), expire()
  local was = free
  if free then
    free = free + back
  end
  if not free or free > rate then
    free = math.max(rate - counted(), 0)
  elseif free < rate and redis.call('exists', taken) == 0 then
    free = rate
  end
  if free ~= was then
    redis.call('set', free_key, string.format('%.0f', free), 'KEEPTTL')
  end
  return free
end

-- How long until so many more are back, in milliseconds. Each taking is one permit at least, so no more of them need be
-- looked at; of very many, those told come back and are told more.
local function back_in(missing)
  local at = now
  local old = redis.call('zrange', taken, 0, math.min(missing, 1000) - 1, 'withscores')
  for place = 1, #old, 2 do
    at = tonumber(old[place + 1]) + interval
    missing = missing - permits_of(old[place])
    if missing <= 0 then
      break
    end
  end
  return math.max(at - now, 1)
end

-- Everything goes together: with the keep-alive time, or with the hash if that goes. Redisson leaves what a client took
-- of a rate for each behind for ever; nobody else writes that, so ours goes when it counts no more.
local function keep_alive()
  local left = keep
  if left > 0 then
    redis.call('pexpire', name, left)
  else
    left = redis.call('pttl', name)
    if left <= 0 and each then
      left = interval + 1000
    end
  end
  if left > 0 then
    redis.call('pexpire', free_key, left)
    redis.call('pexpire', taken, left)
  end
end
