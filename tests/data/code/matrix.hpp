#pragma once
#include <vector>

namespace algebra {

template <typename T>
class Matrix {
 public:
  Matrix(int rows, int columns) : rows_(rows), columns_(columns) {}

  // 行数
  int rows() const { return rows_; }

 private:
  int rows_, columns_;
  std::vector<T> cells_;
};

template <typename T>
[[nodiscard]]
Matrix<T> transposed(const Matrix<T>& matrix) {
  return matrix;
}

}  // namespace algebra
