-- What a name is in use as, and by whom.
local expiries = string.find(name, '{', 1, true) and name .. ':timeout' or '{' .. name .. '}:timeout'
local FOREVER = 922337203685477

-- What is left of a reader's lease: the longest of its timeout keys. The field alone does not say that it lives.
local function reader_left(id, count)
  local left = -2
  for hold = 1, tonumber(count) or 0 do
    left = math.max(left, redis.call('pttl', tag .. ':' .. id .. ':rwlock_timeout:' .. hold))
  end
  return left
end

-- Rows of {holder, count, left, note}; the note is ours: fence, count and label.
local function hash_rows(mode)
  local rows, left = {}, redis.call('pttl', name)
  if redis.call('hlen', name) > 256 then
    return rows
  end
  local fields = redis.call('hgetall', name)
  for at = 1, #fields, 2 do
    local field, count = fields[at], fields[at + 1]
    local reads = mode and field ~= 'mode' and string.sub(field, -6) ~= ':write'
    local own = reads and reader_left(field, count) or left
    if field ~= 'mode' and (not reads or own > 0) then
      local id = reads and field or string.gsub(field, ':write$', '')
      rows[#rows + 1] = { field, count, own, redis.call('hget', 'leasehold_holds:' .. tag, id) or '' }
    end
  end
  return rows
end

-- Gives back the permits whose lease is over; says how many are free then.
local function reclaim(value)
  local over = redis.call('zrangebyscore', expiries, 0, now, 'limit', 0, 1000)
  if #over == 0 then
    return value
  end
  for _, permit in ipairs(over) do
    redis.call('zrem', expiries, permit)
  end
  return redis.call('incrby', name, #over)
end

-- A semaphore of ours that nobody uses is as good as nothing: it stays for a while because Redisson does not make one by
-- itself.
local function is_idle(value)
  local of = redis.call('get', 'leasehold_permits:' .. tag)
  return of and tonumber(of) == value and redis.call('zcard', expiries) == 0
end

-- Rows of {permit, 1, left, ''} and then those of our notes, {id, 0, 0, note}.
local function permit_rows()
  local rows = {}
  local permits = redis.call('zrange', expiries, 0, 255, 'withscores')
  for at = 1, #permits, 2 do
    local left = tonumber(permits[at + 1]) == FOREVER and -1 or permits[at + 1] - now
    rows[#rows + 1] = { permits[at], '1', left, '' }
  end
  local notes = redis.call('hgetall', 'leasehold_holds:' .. tag)
  for at = 1, #notes, 2 do
    rows[#rows + 1] = { notes[at], '0', 0, notes[at + 1] }
  end
  return rows
end

-- The kind of what is under the name, a number that belongs to it, and its rows.
local function state()
  local type = redis.call('type', name).ok
  if type == 'none' then
    return 'none', 0, {}
  elseif type == 'hash' then
    local mode = redis.call('hget', name, 'mode')
    if not mode and redis.call('hexists', name, 'rate') == 1 and redis.call('hexists', name, 'interval') == 1 then
      return 'limiter', 0, {}
    end
    return mode or 'lock', 0, hash_rows(mode)
  elseif type ~= 'string' then
    return type, 0, {}
  end
  local value = redis.call('get', name)
  local number = string.match(value, '^%-?%d+$') and tonumber(value)
  local permits = redis.call('exists', 'leasehold_permits:' .. tag, expiries) > 0
  if number and permits then
    number = reclaim(number)
    if is_idle(number) then
      return 'idle', number, {}
    end
    return 'semaphore', number + redis.call('zcard', expiries), permit_rows()
  end
  if number and redis.call('exists', 'leasehold_latch:' .. tag) == 1 then
    return 'latch', number, {}
  end
  if number and redis.call('pttl', name) == -1 then
    return 'counter', number, {}
  end
  local note = redis.call('hget', 'leasehold_holds:' .. tag, value) or ''
  return 'plain', 0, { { value, '1', redis.call('pttl', name), note } }
end

-- A semaphore of ours that nobody uses makes room for another kind.
local function clear_idle()
  redis.call('del', name, 'leasehold_permits:' .. tag, 'leasehold_holds:' .. tag)
end

-- How many are known to wait, this one not counted: those in line and those who said so.
local function waiting(id)
  local count = redis.call('llen', queue)
  if redis.call('hlen', 'leasehold_waits:' .. tag) > 256 then
    return math.max(count, redis.call('hlen', 'leasehold_waits:' .. tag))
  end
  local told = redis.call('hgetall', 'leasehold_waits:' .. tag)
  for at = 1, #told, 2 do
    local until_ = tonumber(string.match(told[at + 1], '^%d+'))
    if told[at] ~= id and until_ and until_ > now and not redis.call('zscore', places, told[at]) then
      count = count + 1
    end
  end
  if redis.call('zscore', places, id) then
    count = count - 1
  end
  return count
end

-- The answer to one who did not get it.
local function busy(id, place, left, kind, number, rows)
  local fence = redis.call('get', 'leasehold_fence:' .. tag) or '0'
  return { 'busy', left, place, waiting(id), kind, number, fence, tostring(now), rows }
end
