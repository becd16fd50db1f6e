-- Releases a lock that was acquired with lock.lua, never entered again and has no label: three commands. All else is
-- in unlock_any.lua.
--
-- ARGV: id, verb, shape ('' for whatever is there), permits, barrier (ms, 0 for none), line ('' or 'leave'), told
-- Answers 1, or {'gone', mark}.
local id, verb, shape = ARGV[1], ARGV[2], ARGV[3]
-- Where the slot is being moved and the line may be elsewhere, those who stand in it look for themselves when it is done.
local is_lined = shape ~= '' and redis.pcall('exists', 'redisson_lock_queue:' .. tag) == 1
if shape == 'lock' and not is_lined and redis.pcall('hdel', name, id) == 1 then
  tell(verb, 'redisson_lock__channel:' .. tag, '0')
  return 1
elseif shape == 'plain' and not is_lined and redis.pcall('get', name) == id then
  redis.call('del', name)
  tell(verb, 'redisson_lock__channel:' .. tag, '0')
  return 1
end
