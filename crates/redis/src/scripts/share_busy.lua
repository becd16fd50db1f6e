-- Somebody or something is there.
if redis.call('zscore', late, id) then
  return { 'withdrawn' }
end
local kind, number = kind_of()
if kind == 'idle' then
  clear_idle()
  kind = 'none'
end
if kind == 'read' or kind == 'write' then
  local count = redis.call('hget', name, id)
  local left = count and reader_left(id, count) or -2
  if left > 0 then
    write_for_replicas(keep)
    return { 'held', string.match(redis.call('hget', holds, id) or '0', '^%d+'), left }
  end
elseif kind ~= 'none' and kind ~= 'lock' then
  return { 'other', kind, number }
end
local head = sweep()
if (kind == 'none' or kind == 'read') and (not head or head == id and line ~= '') then
  if head then
    leave(id)
    local fence = win(kind == 'none')
    -- Whoever is next in line may be a reader, too.
    local next = sweep()
    if next then
      tell(verb, 'redisson_lock__channel:' .. tag .. ':' .. next, '0')
    end
    return fence
  end
  return win(kind == 'none')
end
local left = kind == 'none' and PLACE or redis.call('pttl', name)
local place = 0
if line == 'stand' then
  place, left = stand(id, left, lease)
end
if kind == 'none' then
  -- Whoever is first is about to take it, or is dead; nobody will tell, so look again soon.
  left = math.min(left, 250 * math.max(place, 1))
end
return busy(id, place, left, kind, number)
