-- The name, and the hash tag that keeps everything about it in one slot: Redisson's rule, which only asks whether the
-- name has an opening brace.
local name = KEYS[1]
local tag = string.find(name, '{', 1, true) and name or '{' .. name .. '}'

-- Tells something: by the store's verb, or both by slot and to the whole cluster.
local function tell(verb, channel, message)
  if verb == 'BOTH' then
    redis.call('publish', channel, message)
    verb = 'spublish'
  end
  redis.call(verb, channel, message)
end

-- While the slot of the name is on its way to another server, some of its keys are there and some here, and what is
-- there looks as if it were not. A server in that state refuses to look for several keys of which one is missing: so
-- this stops the script right here, before it has done anything, and the client tries again.
local NEVER = 'leasehold_never:' .. tag
local function insist_on_all()
  redis.call('exists', name, NEVER)
end
