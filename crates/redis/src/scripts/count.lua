-- Acquires permits of a semaphore that only counts: Redisson's RSemaphore, one number under the name and no holders.
--
-- Its permits and those of the permit-expirable semaphore cannot share one layout: there a number that is less than it
-- was is a permit with an entry, here it may be anything. So this is asked for by name (`counting()`), and the number is
-- taken as it is found, if it is not more than was said. What Java holds has no trace and no lease: if its holder dies,
-- it stays missing. What we hold is a lease all the same, noted in a sorted set of ours beside it, '<take> <id>' with
-- when it ends. What has ended is given back here, and Redisson is told, as its waiters have no timer of their own; while
-- nobody of us asks, nobody gives it back. Neither the number nor our set expires: Java's count on the number staying.
--
-- ARGV: id, lease (ms), how long to keep the fence (ms), line, told, label, verb, of, take. Answers as lock.lua does.
local id, lease, keep, line, told, label, verb = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local of, take = tonumber(ARGV[8]), tonumber(ARGV[9])
local member, channel = ARGV[9] .. ' ' .. id, 'redisson_sc:' .. tag
local late, holds = 'leasehold_late:' .. tag, 'leasehold_holds:' .. tag

-- Together with what is never there: see insist_on_all.
if redis.call('exists', late, NEVER) == 1 and redis.call('zscore', late, id) then
  return { 'withdrawn' }
end

-- Gives back what has ended, and says how many are free then.
local function recover()
  local back = 0
  for _, ended in ipairs(redis.call('zrangebyscore', counting, 0, now, 'limit', 0, 1000)) do
    redis.call('zrem', counting, ended)
    redis.call('hdel', holds, string.match(ended, ' (.*)$') or '')
    back = back + (tonumber(string.match(ended, '^%d+')) or 0)
  end
  if back == 0 then
    return tonumber(redis.call('get', name))
  end
  local free = redis.call('incrby', name, string.format('%.0f', back))
  if free > 0 then
    tell(verb, channel, free)
  end
  return free
end

local function win(free)
  local fence = next_fence(keep, 0)
  if not free then
    redis.call('del', counting, holds)
    redis.call('set', name, of)
    if of > take then
      tell(verb, channel, of - take)
    end
  end
  redis.call('decrby', name, ARGV[9])
  redis.call('zadd', counting, now + lease, member)
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
if kind == 'plain' and string.match(redis.call('get', name), '^%-?%d+$') then
  -- A number that expires: Redisson can make such.
  kind, number = 'counter', tonumber(redis.call('get', name))
elseif kind == 'idle' then
  clear_idle()
  kind = 'none'
end
if kind ~= 'none' and kind ~= 'counter' and not counts then
  return { 'other', kind, number }
elseif kind ~= 'none' and number > of then
  return { 'other', 'semaphore', number }
end
local score = redis.call('zscore', counting, member)
if kind ~= 'none' and score and tonumber(score) > now then
  write_for_replicas(keep)
  return { 'held', string.match(redis.call('hget', holds, id) or '0', '^%d+'), score - now }
end
local free = kind ~= 'none' and recover()
local head = sweep()
if (not free or free >= take) and (not head or head == id and line ~= '') then
  if head then
    leave(id)
  end
  local fence = win(free)
  local next = head and sweep()
  if next then
    tell(verb, 'redisson_lock__channel:' .. tag .. ':' .. next, '0')
  end
  return fence
end
local first = redis.call('zrange', counting, 0, 0, 'withscores')
local left = first[2] and math.max(first[2] - now, 1) or PLACE
local place = 0
if line == 'stand' then
  place, left = stand(id, left, lease)
end
return busy(id, place, left, 'semaphore', number)
