-- Renews many leases, each for itself; never makes a lock and never shortens a lease.
--
-- KEYS: names. ARGV: for each name an id, a lease (ms) and permits (16 bytes each, or
-- 'bulk:<take>', or nothing).
-- Answers for each: what is left (ms), or {'gone', mark}, or {'error', text}.
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function lengthen(key, lease)
  local left = redis.call('pttl', key)
  if left ~= -2 and left < lease then
    redis.call('pexpire', key, lease)
    return lease
  end
  return left
end

-- As in fence.lua: written even where there is nothing to lengthen, because replicas confirm only what is written.
local function write_for_replicas(fences, keep)
  redis.call('pexpire', fences, math.max(redis.call('pttl', fences), keep))
end

-- What lies beside the lock may be on another server already, if the slot is being moved: the lock is what counts.
local function keep(name, tag, lease)
  local left = lengthen(name, lease)
  pcall(write_for_replicas, 'leasehold_fence:' .. tag, lease + 86400000)
  pcall(lengthen, 'leasehold_holds:' .. tag, lease)
  return left
end

-- As in insist.lua: where a lock is more than one key, a part of it says nothing.
local function insist_on_all(name, tag)
  redis.call('exists', name, 'leasehold_never:' .. tag)
end

local function renew_permits(name, tag, id, lease, permits)
  local expiries, members = tag .. ':timeout', {}
  local bulk = string.match(permits, '^bulk:(%d+)$')
  if bulk then
    expiries, members = 'leasehold_bulk:' .. tag, { bulk .. ' ' .. id }
  else
    for at = 1, #permits, 16 do
      members[#members + 1] = string.sub(permits, at, at + 15)
    end
  end
  local counted = (bulk or tostring(#permits / 16)) .. ' ' .. id
  if redis.call('zscore', 'leasehold_counting:' .. tag, counted) then
    expiries, members = 'leasehold_counting:' .. tag, { counted }
  end
  local left = lease
  for _, member in ipairs(members) do
    local score = redis.call('zscore', expiries, member)
    if not score or tonumber(score) <= now then
      return nil
    end
    left = math.max(score - now, left)
  end
  -- The first write must be one that a full server takes; the scores are not.
  lengthen('leasehold_holds:' .. tag, lease)
  redis.call('pexpire', 'leasehold_fence:' .. tag, lease + 86400000)
  for _, member in ipairs(members) do
    redis.call('zadd', expiries, 'XX', now + left, member)
  end
  if redis.call('exists', 'leasehold_permits:' .. tag) == 1 then
    for _, key in ipairs({ name, expiries, 'leasehold_permits:' .. tag }) do
      lengthen(key, lease + 604800000)
    end
  end
  return left
end

local function renew(name, id, lease, permits)
  local tag = string.find(name, '{', 1, true) and name or '{' .. name .. '}'
  if permits ~= '' then
    insist_on_all(name, tag)
    return renew_permits(name, tag, id, lease, permits)
  end
  if redis.call('type', name).ok == 'string' then
    return redis.call('get', name) == id and keep(name, tag, lease) or nil
  end
  local own = redis.call('hmget', name, id, id .. ':write', 'mode')
  local reads = own[3] and tonumber(own[1])
  if reads then
    insist_on_all(name, tag)
    local alive = false
    for hold = 1, reads do
      local key = tag .. ':' .. id .. ':rwlock_timeout:' .. hold
      alive = lengthen(key, lease) > 0 or alive
    end
    -- A reader whose timeout keys are gone is dead to Redisson, whatever its field says.
    if not alive and not own[2] then
      return nil
    end
  end
  if own[1] or own[2] then
    return keep(name, tag, lease)
  end
  return nil
end

local answers = {}
for at, name in ipairs(KEYS) do
  local id, lease, permits = ARGV[3 * at - 2], tonumber(ARGV[3 * at - 1]), ARGV[3 * at]
  local fine, left = pcall(renew, name, id, lease, permits)
  if fine and left then
    answers[at] = left
  elseif fine then
    local tag = string.find(name, '{', 1, true) and name or '{' .. name .. '}'
    answers[at] = { 'gone', redis.call('hget', 'leasehold_broken:' .. tag, id) }
  else
    local why = type(left) == 'table' and (left.err or '') or tostring(left)
    -- A replica writes nothing at all: the whole request belongs elsewhere.
    local refusal = string.match(why, 'READONLY.*')
    if refusal then return redis.error_reply(refusal) end
    answers[at] = { 'error', why }
  end
end
return answers
