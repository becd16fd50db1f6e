-- While the slot of the name is on its way to another server, some of its keys are there and some here, and what is
-- there looks as if it were not. A server in that state refuses to look for several keys of which one is missing: so
-- this stops the script right here, before it has done anything, and the client tries again.
local NEVER = 'leasehold_never:' .. tag
local function insist_on_all()
  redis.call('exists', name, NEVER)
end
