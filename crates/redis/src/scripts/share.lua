-- Acquires shared, on Redisson's read-write layout: a field and a timeout key for each hold.
--
-- ARGV: id, lease (ms), how long to keep the fence (ms), line, told, label, verb. Answers as lock.lua does.
local id, lease, keep, line, told, label, verb = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local late, holds = 'leasehold_late:' .. tag, 'leasehold_holds:' .. tag

local function lengthen(key)
  if redis.call('pttl', key) < tonumber(lease) then
    redis.call('pexpire', key, lease)
  end
end

local function win(first)
  local fence = next_fence(keep, 0)
  if first then
    -- Notes of an earlier use may still be there; nobody reads them, but they would pile up.
    redis.call('del', holds)
    redis.call('hset', name, 'mode', 'read', id, '1')
  else
    redis.call('hset', name, id, '1')
  end
  redis.call('set', tag .. ':' .. id .. ':rwlock_timeout:1', '1', 'PX', lease)
  lengthen(name)
  redis.call('hset', holds, id, fence .. ' 1 ' .. label)
  lengthen(holds)
  if told == '1' then
    redis.call('hdel', 'leasehold_waits:' .. tag, id)
  end
  return tonumber(fence)
end

if redis.call('exists', name, 'redisson_lock_queue:' .. tag, late) == 0 then
  return win(true)
end
