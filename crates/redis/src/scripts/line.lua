-- The line: Redisson's list of waiters and its scores (when each gives up), and beside them a lease for each of ours,
-- which ends long before Redisson's score does when a waiter dies. Redisson subtracts its own wait from everybody's
-- score as it takes the lock, so our scores must have as much added as it subtracts by default.
local queue, scores, places =
  'redisson_lock_queue:' .. tag, 'redisson_lock_timeout:' .. tag, 'leasehold_line:' .. tag
local WAIT, PLACE = 300000, 15000

-- How long somebody with this lease keeps its place without a sign of life: a line is blocked by the dead no longer than
-- a lock would be.
local function place_lease(lease)
  return math.max(2000, math.min(tonumber(lease), PLACE))
end

-- Takes somebody out of the line and moves up those behind; says whether it stood there.
local function leave(id)
  redis.call('zrem', places, id)
  local place = redis.call('lpos', queue, id)
  local scored = redis.call('zrem', scores, id)
  if not place then
    return scored == 1
  end
  for _, other in ipairs(redis.call('lrange', queue, place + 1, -1)) do
    local score = redis.call('zscore', scores, other)
    if score then
      -- Never into the past, whatever wait the others came with.
      redis.call('zadd', scores, math.max(score - WAIT, math.min(score, now + 2 * PLACE)), other)
    end
  end
  redis.call('lrem', queue, 0, id)
  return true
end

-- Drops those at the head whose place is over, and says who is the head then.
local function sweep()
  local head = redis.call('lindex', queue, 0)
  while head do
    local score, place = redis.call('zscore', scores, head), redis.call('zscore', places, head)
    if score and tonumber(score) > now and (not place or tonumber(place) > now) then
      return head
    end
    if score and tonumber(score) > now then
      -- It died before its time: those behind no longer wait for it.
      leave(head)
    else
      redis.call('lpop', queue)
      redis.call('zrem', scores, head)
      redis.call('zrem', places, head)
    end
    head = redis.call('lindex', queue, 0)
  end
  return nil
end

-- Joins the line or stays in it, and says at which place, and when to give the next sign of life at the latest. `left` is
-- what is left of the lock.
local function stand(id, left, lease)
  local place, score = redis.call('lpos', queue, id), redis.call('zscore', scores, id)
  if not place or not score then
    local last = redis.call('lindex', queue, -1)
    local before = last and last ~= id and redis.call('zscore', scores, last)
    local wait = before and (before - now) or math.max(left, 0)
    redis.call('zadd', scores, wait + WAIT + now, id)
    if not place then
      place = redis.call('rpush', queue, id) - 1
    end
  elseif score - now < WAIT / 2 then
    redis.call('zadd', scores, now + WAIT, id)
  end
  local lasts = place_lease(lease)
  redis.call('zadd', places, now + lasts, id)
  -- A line that everybody left without a word does not stay for ever. The scores outlive the list: Redisson never drops
  -- a list entry without a score.
  local top = redis.call('zrange', scores, -1, -1, 'withscores')
  local keep = math.max(top[2] - now, 0) + 60000
  redis.call('pexpire', queue, keep)
  redis.call('pexpire', scores, keep + 1000)
  redis.call('pexpire', places, keep + 1000)
  return place + 1, math.min(left, math.floor(lasts / 3))
end
