-- Acquires permits, on the layout of Redisson's permit-expirable semaphore: one sorted-set member for each.
--
-- ARGV: id, lease (ms), how long to keep the fence (ms), line, told, label, verb, of, permits (16 bytes each, or
-- 'bulk:<take>'). Answers as lock.lua does.
local id, lease, keep, line, told, label, verb = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local of, permits = tonumber(ARGV[8]), ARGV[9]
local take, bulk = permits_in(permits)
local late, holds, marker = 'leasehold_late:' .. tag, 'leasehold_holds:' .. tag, 'leasehold_permits:' .. tag
local KEEP = 604800000

-- Together with what is never there: see insist_on_all.
if redis.call('exists', late, NEVER) == 1 and redis.call('zscore', late, id) then
  return { 'withdrawn' }
end

local function win(free)
  local fence = next_fence(keep, 0)
  if not free then
    redis.call('set', name, of)
    redis.call('set', marker, of)
    redis.call('del', expiries, bulks, holds)
  end
  redis.call('decrby', name, string.format('%.0f', take))
  if bulk then
    redis.call('zadd', bulks, now + lease, bulk .. ' ' .. id)
  else
    for at = 1, #permits, 16 do
      redis.call('zadd', expiries, now + lease, string.sub(permits, at, at + 15))
    end
  end
  if redis.call('exists', marker) == 1 then
    -- Ours: all of it goes when nobody has used it for long.
    for _, key in ipairs({ name, marker, expiries, bulks }) do
      redis.call('pexpire', key, math.max(redis.call('pttl', key), lease + KEEP))
    end
  elseif redis.call('pttl', name) > 0 then
    redis.call('pexpire', expiries, redis.call('pttl', name))
  end
  redis.call('hset', holds, id, string.format('%s %.0f %s', fence, take, label))
  if redis.call('pttl', holds) < tonumber(lease) then
    redis.call('pexpire', holds, lease)
  end
  if told == '1' then
    redis.call('hdel', 'leasehold_waits:' .. tag, id)
  end
  return tonumber(fence)
end

local kind, number, counts = kind_of()
if counts then
  return { 'other', kind, number }
elseif kind == 'counter' and number == of then
  -- Nobody marked it: it is what Redisson's trySetPermits leaves.
  kind = 'semaphore'
elseif kind == 'idle' and number ~= of then
  clear_idle()
  kind = 'none'
elseif kind == 'counter' then
  return { 'other', 'semaphore', number }
elseif kind == 'semaphore' and number ~= of then
  return { 'other', kind, number }
elseif kind ~= 'none' and kind ~= 'semaphore' and kind ~= 'idle' then
  return { 'other', kind, number }
end
local score = bulk and redis.call('zscore', bulks, bulk .. ' ' .. id)
  or not bulk and redis.call('zscore', expiries, string.sub(permits, 1, 16))
if score and tonumber(score) > now then
  write_for_replicas(keep)
  local note = redis.call('hget', holds, id) or '0'
  return { 'held', string.match(note, '^%d+'), score - now }
end
local free = kind ~= 'none' and tonumber(redis.call('get', name))
local head = sweep()
if (not free or free >= take) and (not head or head == id and line ~= '') then
  if not head then
    return win(free)
  end
  leave(id)
  local fence = win(free)
  local next = sweep()
  if next then
    tell(verb, 'redisson_lock__channel:' .. tag .. ':' .. next, '0')
  end
  return fence
end
local first = redis.call('zrange', expiries, 0, 0, 'withscores')
local left = first[2] and tonumber(first[2]) ~= FOREVER and math.max(first[2] - now, 1) or PLACE
local place = 0
if line == 'stand' then
  place, left = stand(id, left, lease)
end
return busy(id, place, left, 'semaphore', of)
