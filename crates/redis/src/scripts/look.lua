-- Everything about a name.
-- Answers {kind, number, fence, now, rows, line (id, place lease, …), told (id, text, …)}.
sweep()
local kind, number = kind_of()
local fence = redis.call('get', 'leasehold_fence:' .. tag) or '0'
local line = redis.call('lrange', queue, 0, 1023)
local told = redis.call('hgetall', 'leasehold_waits:' .. tag)
return { kind, number, fence, tostring(now), rows_of(kind), line, told }
