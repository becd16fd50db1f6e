-- What a name is in use as, and by whom.
local expiries = tag .. ':timeout'
local FOREVER = 922337203685477
-- Acquisitions of more permits than anybody wants to see as an entry each: one member for all of them, '<take> <id>'.
-- Redisson does not know these; it sees that the permits are not there, and only we give them back when a lease ends.
local bulks = 'leasehold_bulk:' .. tag
-- What we hold of a semaphore that only counts, in the same form; see count.lua.
local counting = 'leasehold_counting:' .. tag

-- How many permits an argument stands for: sixteen bytes each, or 'bulk:<take>'.
local function permits_in(permits)
  local bulk = string.match(permits, '^bulk:(%d+)$')
  return bulk and tonumber(bulk) or #permits / 16, bulk
end

-- How many permits the members '<take> <id>' under a key stand for.
local function taken_in(key)
  local count = 0
  for _, member in ipairs(redis.call('zrange', key, 0, -1)) do
    count = count + (tonumber(string.match(member, '^%d+')) or 0)
  end
  return count
end

-- How many permits are out.
local function out()
  return redis.call('zcard', expiries) + taken_in(bulks)
end

-- How many times a reader holds, as its field says; nothing if that is no such number. Others may keep any number there.
local function reads_in(count)
  return string.match(count, '^%d%d?%d?%d?%d?$') and tonumber(count)
end

-- What is left of a reader's lease: the longest of its newest timeout keys. The field alone does not say that it lives.
local function reader_left(id, count)
  local left, reads = -2, reads_in(count) or 0
  for hold = math.max(reads - 255, 1), reads do
    left = math.max(left, redis.call('pttl', tag .. ':' .. id .. ':rwlock_timeout:' .. hold))
  end
  return left
end

-- Whether a field may be a holder's: somebody's hash with a field called mode has others.
local function may_hold(field)
  return string.find(field, '^%x[%x%-]+:%-?%d') ~= nil
end

-- Rows of {holder, count, left, note}; the note is ours: fence, count and label. Of very many, some.
local function hash_rows(mode)
  local rows, left = {}, redis.call('pttl', name)
  local fields = redis.call('hlen', name) > 256 and redis.call('hscan', name, 0, 'COUNT', 256)[2]
    or redis.call('hgetall', name)
  for at = 1, #fields, 2 do
    local field, count = fields[at], fields[at + 1]
    local reads = mode and field ~= 'mode' and string.sub(field, -6) ~= ':write'
    local own = not reads and left or may_hold(field) and reader_left(field, count) or -2
    if field ~= 'mode' and (not reads or own > 0) then
      local id = reads and field or string.gsub(field, ':write$', '')
      rows[#rows + 1] = { field, count, own, redis.call('hget', 'leasehold_holds:' .. tag, id) or '' }
    end
  end
  return rows
end

-- Gives back the permits whose lease is over; says how many are free then.
local function reclaim(value)
  local back = 0
  for _, permit in ipairs(redis.call('zrangebyscore', expiries, 0, now, 'limit', 0, 1000)) do
    back = back + redis.call('zrem', expiries, permit)
  end
  for _, member in ipairs(redis.call('zrangebyscore', bulks, 0, now)) do
    redis.call('zrem', bulks, member)
    back = back + (tonumber(string.match(member, '^%d+')) or 0)
  end
  return back > 0 and redis.call('incrby', name, back) or value
end

-- A semaphore of ours that nobody uses is as good as nothing: it stays for a while because Redisson does not make one by
-- itself.
local function is_idle(value)
  local of = redis.call('get', 'leasehold_permits:' .. tag)
  return of and tonumber(of) == value and out() == 0
end

-- Rows of {permit, 1, left, ''} and then those of our notes, {id, 0, 0, note}.
local function permit_rows()
  local rows = {}
  for _, key in ipairs({ expiries, bulks }) do
    local permits = redis.call('zrange', key, 0, 255, 'withscores')
    for at = 1, #permits, 2 do
      local left = tonumber(permits[at + 1]) == FOREVER and -1 or permits[at + 1] - now
      rows[#rows + 1] = { permits[at], '1', left, '' }
    end
  end
  local living = redis.call('zrangebyscore', counting, '(' .. now, '+inf', 'withscores', 'limit', 0, 256)
  for at = 1, #living, 2 do
    rows[#rows + 1] = { living[at], '1', living[at + 1] - now, '' }
  end
  local notes = redis.call('hgetall', 'leasehold_holds:' .. tag)
  for at = 1, #notes, 2 do
    rows[#rows + 1] = { notes[at], '0', 0, notes[at + 1] }
  end
  return rows
end

-- The kind of what is under the name, a number that belongs to it, and whether it is a semaphore that only counts.
local function kind_of()
  local type = redis.call('type', name).ok
  if type == 'none' then
    return 'none', 0
  elseif type == 'hash' then
    local mode = redis.call('hget', name, 'mode')
    if not mode and redis.call('hexists', name, 'rate') == 1 and redis.call('hexists', name, 'interval') == 1 then
      return 'limiter', 0
    end
    return mode or 'lock', 0
  elseif type ~= 'string' then
    return type, 0
  end
  local value = redis.call('get', name)
  local number = string.match(value, '^%-?%d+$') and tonumber(value)
  if number and redis.call('exists', 'leasehold_permits:' .. tag, expiries, bulks) > 0 then
    number = reclaim(number)
    if is_idle(number) then
      return 'idle', number
    end
    return 'semaphore', number + out()
  elseif number and redis.call('exists', counting) == 1 then
    return 'semaphore', number + taken_in(counting), true
  elseif number and redis.call('exists', 'leasehold_latch:' .. tag) == 1 then
    return 'latch', number
  elseif number and redis.call('pttl', name) == -1 then
    return 'counter', number
  end
  return 'plain', 0
end

-- Who holds what is of this kind.
local function rows_of(kind)
  if kind == 'lock' then
    return hash_rows(nil)
  elseif kind == 'read' or kind == 'write' then
    return hash_rows(kind)
  elseif kind == 'semaphore' then
    return permit_rows()
  elseif kind == 'plain' then
    local value = redis.call('get', name)
    local note = redis.call('hget', 'leasehold_holds:' .. tag, value) or ''
    return { { value, '1', redis.call('pttl', name), note } }
  end
  return {}
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
local function busy(id, place, left, kind, number)
  local fence = redis.call('get', 'leasehold_fence:' .. tag) or '0'
  return { 'busy', left, place, waiting(id), kind, number, fence, tostring(now), rows_of(kind) }
end
