-- Everything about a name.
--
-- ARGV: 'listed' if the name is one of many, in a database that others may use for large things
-- Answers {kind, number, fence, now, rows, line (id, place lease, …), told (id, text, …)}.
if ARGV[1] == 'listed' and redis.call('type', name).ok == 'string' and redis.call('strlen', name) > 128 then
  return { 'other', 0, '0', tostring(now), {}, {}, {} }
end
sweep()
local kind, number = kind_of()
local fence = redis.call('get', 'leasehold_fence:' .. tag) or '0'
local line = redis.call('lrange', queue, 0, 1023)
local told = redis.call('hgetall', 'leasehold_waits:' .. tag)
return { kind, number, fence, tostring(now), rows_of(kind), line, told }
