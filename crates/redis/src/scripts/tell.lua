-- Tells something: by the store's verb, or both by slot and to the whole cluster.
local function tell(verb, channel, message)
  if verb == 'BOTH' then
    redis.call('publish', channel, message)
    verb = 'spublish'
  end
  redis.call(verb, channel, message)
end
