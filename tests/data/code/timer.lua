local Timer = {}
Timer.__index = Timer

-- 新建计时器
function Timer.new(seconds)
  local self = setmetatable({}, Timer)
  self.left = seconds
  return self
end

function Timer:tick()
  self.left = self.left - 1

  return self.left <= 0
end

return Timer
