-- The next fence of the name, as text: the server's time in microseconds, or one more than the last where that is not
-- less, so that fences grow though the clock is set back or the last one is lost. The last one is kept for `keep` ms.
-- This is the first write of every acquire, and one that a full server refuses: then nothing has happened.
-- Numbers stay text where they can: turning them to and fro costs as much as a command.
-- So many `more` after it are reserved along with it; the last of them is what is kept, and comes second.
local fences = 'leasehold_fence:' .. tag

-- A repeated request finds what an earlier one did, and writes nothing. But replicas confirm what the same connection
-- wrote, and newer servers count nothing else: so here is something to confirm, which comes after what was found.
local function write_for_replicas(keep)
  redis.call('pexpire', fences, math.max(redis.call('pttl', fences), tonumber(keep)))
end

local function next_fence(keep, floor, more)
  local time = redis.call('time')
  local fence = time[1] .. string.format('%06d', time[2])
  local last = more and string.format('%.0f', fence + more) or fence
  local before = redis.call('set', fences, last, 'PX', keep, 'GET')
  before = math.max(before and tonumber(before) or 0, floor)
  if before >= tonumber(fence) then
    fence = string.format('%.0f', before + 1)
    last = more and string.format('%.0f', before + 1 + more) or fence
    redis.call('set', fences, last, 'PX', keep)
  end
  return fence, last
end
