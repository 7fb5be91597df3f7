module Walks

"一步"
struct Step
    length::Float64
end

@inline
function total(steps)
    sum = 0.0
    for step in steps
        sum += step.length
    end

    return sum
end

end
