-- Somebody or something is there.
if redis.call('hexists', late, id) == 1 then
  return { 'withdrawn' }
end
local kind, number, rows = state()
if kind == 'idle' then
  clear_idle()
  kind = 'none'
end
local plain = shape == 'plain'
local field = shape == 'write' and id .. ':write' or id
for _, row in ipairs(rows) do
  if row[1] == field and (kind == 'plain') == plain and kind ~= 'semaphore' then
    return { 'held', redis.call('get', fences) or '0', row[3] }
  end
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
local place = line == 'stand' and stand(id, left) or 0
return busy(id, place, left, kind, number, rows)
