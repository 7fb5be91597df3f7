# 拟合
fit <- function(x, y) {
  stopifnot(length(x) == length(y))

  lm(y ~ x)
}

report = function(model) {
  print(summary(model))
}
