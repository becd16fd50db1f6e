-- Acquires exclusively. One round trip and five commands when nobody is there; everything else is in lock_busy.lua.
--
-- ARGV: id, lease (ms), how long to keep the fence (ms), shape, line ('' not fair, 'try' fair without standing,
-- 'stand'), told (1 if it is noted as waiting), label, and for a cohort how many fences more to reserve
-- Answers the fence; or {'held', fence, left} to a repeated attempt; or what stands in the way.
local id, lease, keep, shape, line, told, label = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local queue, late = 'redisson_lock_queue:' .. tag, 'leasehold_late:' .. tag
local is_free, floor = redis.call('exists', name, queue, late) == 0, 0

-- What most acquisitions are stands before all else and makes no function: one costs a third of a command. The fence is
-- the one of fence.lua.
if is_free and told == '0' and label == '' and not ARGV[8] and (shape == 'lock' or shape == 'plain') then
  local time = redis.call('time')
  local fence = time[1] .. string.format('%06d', time[2])
  local before = redis.call('set', 'leasehold_fence:' .. tag, fence, 'PX', keep, 'GET')
  if not before or #before == #fence and before < fence then
    if shape == 'plain' then
      redis.call('set', name, id, 'PX', lease)
    else
      redis.call('hset', name, id, '1')
      redis.call('pexpire', name, lease)
    end
    return tonumber(fence)
  end
  -- It was written over: the next fence is still to be above it.
  floor = tonumber(before) or 0
end
