-- Lets no later grant of the name have a fence up to this one, if the acquisition holds it: from now on it is its own.
-- How several servers agree on one fence. Notes of who holds are written over only where they are.
--
-- ARGV: id, fence, how long to keep the fence (ms). Answers what is left (ms), or {'gone', mark}.
local id, fence, keep = ARGV[1], ARGV[2], ARGV[3]
local fences, tokens = 'leasehold_fence:' .. tag, 'redisson_lock_token:' .. tag
local holds = 'leasehold_holds:' .. tag
local left
local kind = redis.call('type', name).ok
if kind == 'string' then
  left = redis.call('get', name) == id and redis.call('pttl', name)
elseif kind == 'hash' then
  local own = redis.call('hmget', name, id, id .. ':write', 'mode')
  if own[2] or own[1] and not own[3] then
    left = redis.call('pttl', name)
  elseif own[1] then
    -- A reader's own lease is in its timeout key.
    left = redis.call('pttl', tag .. ':' .. id .. ':rwlock_timeout:1')
  end
end
if not left or left <= 0 then
  return { 'gone', redis.call('hget', 'leasehold_broken:' .. tag, id) }
end
if tonumber(redis.call('get', fences) or 0) < tonumber(fence) then
  redis.call('set', fences, fence, 'PX', keep)
end
-- Java's fenced locks count here, where there is such a lock.
local token = redis.call('get', tokens)
if token and tonumber(token) < tonumber(fence) then
  redis.call('set', tokens, fence)
end
local note = redis.call('hget', holds, id)
if note and tonumber(string.match(note, '^%d+')) < tonumber(fence) then
  redis.call('hset', holds, id, (string.gsub(note, '^%d+', fence)))
end
return left
