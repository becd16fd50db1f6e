-- Takes the lock, in any shape; nobody is there.
local more = ARGV[8] and tonumber(ARGV[8])

local function win()
  local fence, last
  if shape == 'fenced' then
    local tokens = 'redisson_lock_token:' .. tag
    fence, last = next_fence(keep, tonumber(redis.call('get', tokens) or 0) or 0, more)
    redis.call('set', tokens, last)
  else
    fence = next_fence(keep, floor, more)
  end
  if shape == 'plain' then
    redis.call('set', name, id, 'PX', lease)
  elseif shape == 'write' then
    redis.call('hset', name, 'mode', 'write', id .. ':write', '1')
    redis.call('pexpire', name, lease)
  else
    redis.call('hset', name, id, '1')
    redis.call('pexpire', name, lease)
  end
  if label ~= '' then
    redis.call('hset', 'leasehold_holds:' .. tag, id, fence .. ' 1 ' .. label)
    redis.call('pexpire', 'leasehold_holds:' .. tag, lease)
  end
  if told == '1' then
    redis.call('hdel', 'leasehold_waits:' .. tag, id)
  end
  return tonumber(fence)
end

if is_free then
  return win()
end
