-- Reads cells in the order of their names, from the index. Those that expired are taken out of it here.
--
-- KEYS: prefix of cells, index. ARGV: from ('[…' or '(…'), to, limit
-- Answers {name, version, value, …}, one cell more than the limit if there are more.
local answer, from = {}, ARGV[1]
for _ = 1, 100 do
  local names = redis.call('zrangebylex', KEYS[2], from, ARGV[2], 'LIMIT', 0, ARGV[3] + 1)
  for _, name in ipairs(names) do
    local cell = redis.call('hmget', KEYS[1] .. name, 'version', 'value')
    if cell[1] then
      answer[#answer + 1] = name
      answer[#answer + 1] = cell[1]
      answer[#answer + 1] = cell[2]
    else
      redis.call('zrem', KEYS[2], name)
    end
    from = '(' .. name
    if #answer > 3 * ARGV[3] then
      return answer
    end
  end
  if #names == 0 then
    return answer
  end
end
return answer
