-- Acquires exclusively. One round trip and five commands when nobody is there; everything else is in lock_busy.lua.
--
-- ARGV: id, lease (ms), how long to keep the fence (ms), shape, line ('' not fair, 'try' fair without standing,
-- 'stand'), told (1 if it is noted as waiting), label, and for a cohort how many fences more to reserve
-- Answers the fence; or {'held', fence, left} to a repeated attempt; or what stands in the way.
local id, lease, keep, shape, line, told, label = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local more = ARGV[8] and tonumber(ARGV[8])
local queue, late = 'redisson_lock_queue:' .. tag, 'leasehold_late:' .. tag

local function win()
  local fence, last
  if shape == 'fenced' then
    local tokens = 'redisson_lock_token:' .. tag
    fence, last = next_fence(keep, tonumber(redis.call('get', tokens) or 0) or 0, more)
    redis.call('set', tokens, last)
  else
    fence = next_fence(keep, 0, more)
  end
  if shape == 'plain' then
    redis.call('set', name, id, 'PX', lease)
  elseif shape == 'write' then
    redis.call('hset', name, 'mode', 'write', id .. ':write', '1')
    redis.call('pexpire', name, lease)
  else
    redis.call('hset', name, id, '1')
    redis.call('pexpire', name, lease)
  end
  if label ~= '' then
    redis.call('hset', 'leasehold_holds:' .. tag, id, fence .. ' 1 ' .. label)
    redis.call('pexpire', 'leasehold_holds:' .. tag, lease)
  end
  if told == '1' then
    redis.call('hdel', 'leasehold_waits:' .. tag, id)
  end
  return tonumber(fence)
end

if redis.call('exists', name, queue, late) == 0 then
  return win()
end
