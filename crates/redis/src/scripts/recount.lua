-- Writes how often an owner holds its lock, absolutely, if it holds it at all. With nothing exclusive left a writer
-- becomes a reader.
--
-- ARGV: id, verb, exclusive holds, shared holds. Answers what is left (ms), or {'gone', mark}.
local id, verb, exclusive, shared = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
insist_on_all()
local mark = { 'gone', redis.call('hget', 'leasehold_broken:' .. tag, id) }
local type = redis.call('type', name).ok
if type == 'string' then
  -- Re-entry of a plain lock is counted in the client only.
  return redis.call('get', name) == id and redis.call('pttl', name) or mark
elseif type ~= 'hash' then
  return mark
end
local own = redis.call('hmget', name, id, id .. ':write', 'mode')
local left = redis.call('pttl', name)
if not own[1] and not own[2] then
  return mark
end

local reads = own[3] and tonumber(own[1]) or 0
if reads > 0 and not own[2] then
  -- A reader's own lease is in its timeout keys; without them it is dead.
  left = redis.call('pttl', tag .. ':' .. id .. ':rwlock_timeout:1')
  if left <= 0 then
    return mark
  end
end

-- A field and a timeout key for each shared hold, and no more of them than that.
local function write_readers()
  if shared > 0 then
    redis.call('hset', name, id, shared)
  elseif reads > 0 then
    redis.call('hdel', name, id)
  end
  for hold = 1, shared do
    redis.call('set', tag .. ':' .. id .. ':rwlock_timeout:' .. hold, 1, 'PX', math.max(left, 1))
  end
  for hold = shared + 1, reads do
    redis.call('del', tag .. ':' .. id .. ':rwlock_timeout:' .. hold)
  end
end

-- From now on the fence of the name may be another reader's: ours goes into the note, as every reader's.
local function keep_fence()
  local holds = 'leasehold_holds:' .. tag
  if redis.call('hexists', holds, id) == 0 then
    redis.call('hset', holds, id, (redis.call('get', 'leasehold_fence:' .. tag) or '0') .. ' 1 ')
    redis.call('pexpire', holds, math.max(left, 1))
  end
end

-- A write that changes nothing and that a full server takes; those after it are taken then.
redis.call('hdel', name, '')
if exclusive > 0 and not own[3] then
  redis.call('hset', name, id, exclusive + shared)
elseif exclusive > 0 and own[2] then
  redis.call('hset', name, id .. ':write', exclusive)
  write_readers()
elseif exclusive > 0 then
  return mark
else
  redis.call('hdel', name, id .. ':write')
  redis.call('hset', name, 'mode', 'read')
  write_readers()
  if own[2] or not own[3] then
    -- Redisson is silent when a writer becomes a reader, and its readers wait on; a message is allowed and wakes them.
    -- `1` those who sleep, `0` one who is about to.
    keep_fence()
    tell(verb, 'redisson_rwlock:' .. tag, '1')
    tell(verb, 'redisson_rwlock:' .. tag, '0')
  end
end
return left
