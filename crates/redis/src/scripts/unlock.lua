-- Releases a lock that was acquired with lock.lua, never entered again and has no label: three commands. All else is
-- in unlock_any.lua.
--
-- ARGV: id, verb, shape ('' for whatever is there), permits, barrier (ms, 0 for none), line ('' or 'leave'), told
-- Answers 1, or {'gone', mark}.
local id, verb, shape = ARGV[1], ARGV[2], ARGV[3]
if shape == 'lock' and redis.pcall('hdel', name, id) == 1 then
  if redis.call('exists', 'redisson_lock_queue:' .. tag) == 0 then
    redis.call(verb, 'redisson_lock__channel:' .. tag, '0')
    return 1
  end
  shape = 'freed'
elseif shape == 'plain' and redis.pcall('get', name) == id then
  redis.call('del', name)
  if redis.call('exists', 'redisson_lock_queue:' .. tag) == 0 then
    redis.call(verb, 'redisson_lock__channel:' .. tag, '0')
    return 1
  end
  shape = 'freed'
end
