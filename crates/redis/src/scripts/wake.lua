-- Wakes whoever may come next: the head of the line if there is one, else all who listen on this channel.
local function wake(verb, channel, message)
  local head = sweep()
  if head then
    tell(verb, 'redisson_lock__channel:' .. tag .. ':' .. head, '0')
  else
    tell(verb, channel, message)
  end
end
