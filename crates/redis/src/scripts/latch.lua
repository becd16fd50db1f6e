-- A step on a latch, on the layout of Redisson's count-down latch.
--
-- ARGV: step ('read', 'arm', 'count'), number or id, verb. Answers the count after it, or {'other', kind, number}.
local step, argument, verb = ARGV[1], ARGV[2], ARGV[3]
local marker, channel = 'leasehold_latch:' .. tag, 'redisson_countdownlatch__channel__{' .. name .. '}'
if step ~= 'read' then
  insist_on_all()
end
local kind, count = kind_of()
if kind == 'none' or kind == 'idle' then
  if step == 'arm' and tonumber(argument) > 0 then
    if kind == 'idle' then
      clear_idle()
    end
    redis.call('set', name, argument)
    redis.call('set', marker, 1, 'PX', 604800000)
    tell(verb, channel, '1')
    return tonumber(argument)
  end
  return 0
elseif kind ~= 'latch' and kind ~= 'counter' then
  return { 'other', kind, count }
end
if step == 'count' then
  local counted = 'leasehold_count:' .. tag .. ':' .. argument
  if redis.call('set', counted, 1, 'PX', 120000, 'NX') then
    count = redis.call('decr', name)
    if count <= 0 then
      redis.call('del', name, marker)
    end
    if count == 0 then
      tell(verb, channel, '0')
    end
  end
end
return math.max(count, 0)
