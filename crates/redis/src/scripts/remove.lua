-- Takes one acquisition out, whatever its shape, and wakes whoever may come next. Says whether it held.
-- The first write is always one that a full server still takes.
local lock_channel, rw_channel = 'redisson_lock__channel:' .. tag, 'redisson_rwlock:' .. tag
local holds = 'leasehold_holds:' .. tag

local function remove_reader(verb, id)
  local reads = reads_in(redis.call('hget', name, id) or '')
  local wrote = redis.call('hdel', name, id .. ':write') == 1
  if reads then
    redis.call('hdel', name, id)
    for hold = 1, reads do
      redis.call('del', tag .. ':' .. id .. ':rwlock_timeout:' .. hold)
    end
  end
  if not reads and not wrote then
    return false
  end
  redis.call('hdel', holds, id)
  -- What the others' timeout keys say is what is left of the lock; readers without one are dead.
  local left, mode = -1, redis.call('hget', name, 'mode')
  local fields = redis.call('hgetall', name)
  for at = 1, #fields, 2 do
    if may_hold(fields[at]) then
      left = math.max(left, reader_left(fields[at], fields[at + 1]))
    end
  end
  if left <= 0 and (mode == 'read' or wrote) then
    redis.call('del', name, holds)
    if wrote and not sweep() then
      -- To Redisson `1` wakes all who sleep, and passes by one that has tried for the last time and does not sleep yet;
      -- the `0` after it waits for that one.
      tell(verb, rw_channel, '1')
    end
    wake(verb, rw_channel, '0')
  elseif wrote then
    redis.call('hset', name, 'mode', 'read')
    redis.call('pexpire', name, left)
    tell(verb, rw_channel, '1')
    tell(verb, rw_channel, '0')
  elseif left > 0 and mode == 'read' then
    redis.call('pexpire', name, left)
  end
  return true
end

-- Gives back what is held of a semaphore that only counts; nothing if it is not one.
local function remove_counted(verb, id, take)
  local member = string.format('%.0f %s', take, id)
  local score = redis.call('zscore', counting, member)
  if not score then
    return nil
  end
  redis.call('zrem', counting, member)
  redis.call('hdel', holds, id)
  local free = redis.call('incrby', name, string.format('%.0f', take))
  if free > 0 then
    tell(verb, 'redisson_sc:' .. tag, free)
  end
  return tonumber(score) > now
end

local function remove_permits(verb, id, permits)
  local take, bulk = permits_in(permits)
  local counted = remove_counted(verb, id, take)
  if counted ~= nil then
    return counted
  end
  local removed, living = 0, 0
  if bulk and redis.call('zrem', bulks, bulk .. ' ' .. id) == 1 then
    removed, living = take, take
  end
  for at = 1, bulk and 0 or #permits, 16 do
    local permit = string.sub(permits, at, at + 15)
    local score = redis.call('zscore', expiries, permit)
    if score then
      removed = removed + redis.call('zrem', expiries, permit)
      living = living + (tonumber(score) > now and 1 or 0)
    end
  end
  redis.call('hdel', holds, id)
  if removed > 0 then
    local free = redis.call('incrby', name, string.format('%.0f', removed))
    if is_idle(free) then
      redis.call('pexpire', name, 86400000)
      redis.call('pexpire', 'leasehold_permits:' .. tag, 86400000)
    end
    wake(verb, 'redisson_sc:' .. tag, free)
  end
  return living > 0
end

local function remove(verb, id, permits)
  local type = redis.call('type', name).ok
  if type == 'string' and permits ~= '' then
    return remove_permits(verb, id, permits)
  elseif type == 'string' and redis.call('get', name) == id then
    redis.call('del', name, holds)
    wake(verb, lock_channel, '0')
    return true
  elseif type ~= 'hash' then
    return false
  elseif redis.call('hexists', name, 'mode') == 1 then
    return remove_reader(verb, id)
  elseif redis.call('hdel', name, id) == 1 then
    redis.call('del', name, holds)
    wake(verb, lock_channel, '0')
    return true
  end
  return false
end
