-- Acquires exclusively. One round trip and six commands when nobody is there; everything else is in lock_busy.lua.
--
-- ARGV: id, lease (ms), shape, line ('' not fair, 'try' fair without standing, 'stand'), waits (1 once it waits), label
-- Answers the fence; or {'held', fence, left} to a repeated attempt; or what stands in the way.
local id, lease, shape, line, waits, label = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local fences, queue, late =
  'leasehold_fence:' .. tag, 'redisson_lock_queue:' .. tag, 'leasehold_late:' .. tag

local function win()
  local time = redis.call('time')
  local fence, keep = time[1] * 1000000 + time[2], lease + 86400000
  -- The first write, and one that a full server refuses: then nothing has happened.
  local before = redis.call('set', fences, string.format('%.0f', fence), 'PX', keep, 'GET')
  before = before and tonumber(before) or 0
  if shape == 'fenced' then
    before = math.max(before, tonumber(redis.call('get', 'redisson_lock_token:' .. tag) or 0) or 0)
  end
  if before >= fence then
    fence = before + 1
    redis.call('set', fences, string.format('%.0f', fence), 'PX', keep)
  end
  if shape == 'plain' then
    redis.call('set', name, id, 'PX', lease)
  elseif shape == 'write' then
    redis.call('hset', name, 'mode', 'write', id .. ':write', 1)
    redis.call('pexpire', name, lease)
  else
    redis.call('hset', name, id, 1)
    redis.call('pexpire', name, lease)
    if shape == 'fenced' then
      redis.call('set', 'redisson_lock_token:' .. tag, string.format('%.0f', fence))
    end
  end
  if label ~= '' then
    redis.call('hset', 'leasehold_holds:' .. tag, id, string.format('%.0f 1 %s', fence, label))
    redis.call('pexpire', 'leasehold_holds:' .. tag, lease)
  end
  if waits == '1' then
    redis.call('hdel', 'leasehold_waits:' .. tag, id)
  end
  return fence
end

if redis.call('exists', name, queue, late) == 0 then
  return win()
end
