-- Somebody or something is there.
if redis.call('zscore', late, id) then
  return { 'withdrawn' }
end
local kind, number = kind_of()
if kind == 'idle' then
  clear_idle()
  kind = 'none'
end
local plain = shape == 'plain'
local own
if kind == 'plain' then
  own = plain and redis.call('get', name) == id
elseif kind == 'lock' or kind == 'write' then
  own = not plain and redis.call('hexists', name, kind == 'write' and id .. ':write' or id) == 1
end
if own then
  write_for_replicas(keep)
  -- Nobody was granted anything since: the fence of the name is still this one's, the last of those it reserved.
  local last = redis.call('get', fences) or '0'
  local fence = more and string.format('%.0f', math.max(last - more, 0)) or last
  return { 'held', fence, redis.call('pttl', name) }
end
local is_lock = kind == 'lock' or kind == 'read' or kind == 'write'
if kind ~= 'none' and not (is_lock and not plain) and not (kind == 'plain' and plain) then
  return { 'other', kind, number }
end
local head = sweep()
if kind == 'none' and (not head or head == id and line ~= '') then
  if head then
    leave(id)
  end
  return win()
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
