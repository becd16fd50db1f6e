-- Acquires shared, on Redisson's read-write layout: a field and a timeout key for each hold.
--
-- ARGV: id, lease (ms), line, waits, label, verb. Answers as lock.lua does.
local id, lease, line, waits, label, verb = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local fences, late, holds = 'leasehold_fence:' .. tag, 'leasehold_late:' .. tag, 'leasehold_holds:' .. tag

local function lengthen(key)
  if redis.call('pttl', key) < tonumber(lease) then
    redis.call('pexpire', key, lease)
  end
end

local function win(first)
  local time = redis.call('time')
  local fence, keep = time[1] * 1000000 + time[2], lease + 86400000
  local before = redis.call('set', fences, string.format('%.0f', fence), 'PX', keep, 'GET')
  before = before and tonumber(before) or 0
  if before >= fence then
    fence = before + 1
    redis.call('set', fences, string.format('%.0f', fence), 'PX', keep)
  end
  if first then
    -- Notes of an earlier use may still be there; nobody reads them, but they would pile up.
    redis.call('del', holds)
    redis.call('hset', name, 'mode', 'read', id, 1)
  else
    redis.call('hset', name, id, 1)
  end
  redis.call('set', tag .. ':' .. id .. ':rwlock_timeout:1', 1, 'PX', lease)
  lengthen(name)
  redis.call('hset', holds, id, string.format('%.0f 1 %s', fence, label))
  lengthen(holds)
  if waits == '1' then
    redis.call('hdel', 'leasehold_waits:' .. tag, id)
  end
  return fence
end

if redis.call('exists', name, 'redisson_lock_queue:' .. tag, late) == 0 then
  return win(true)
end
