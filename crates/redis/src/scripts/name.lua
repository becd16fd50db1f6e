-- The name, and the hash tag that keeps everything about it in one slot: Redisson's rule, which only asks whether the
-- name has an opening brace.
local name = KEYS[1]
local tag = string.find(name, '{', 1, true) and name or '{' .. name .. '}'
