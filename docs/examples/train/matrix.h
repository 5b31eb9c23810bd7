// Matrix products in plain C++: tiles of the result that stay in registers, which the compiler lays into vectors.
// Thread-safety: pure functions, which start their own threads.
#pragma once

#include "parallel.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace example {

// Borrowed elements. Strides count elements.
template <typename Real> struct Matrix {
  Real *data;
  std::int64_t rows, columns, rowStride, columnStride;

  Matrix(Real *data, std::int64_t rows, std::int64_t columns) : Matrix(data, rows, columns, columns, 1) {}
  Matrix(Real *data, std::int64_t rows, std::int64_t columns, std::int64_t rowStride, std::int64_t columnStride)
      : data(data), rows(rows), columns(columns), rowStride(rowStride), columnStride(columnStride) {}
  // As a Real * converts to a const Real *. NOLINTNEXTLINE(google-explicit-constructor)
  operator Matrix<const Real>() const { return {data, rows, columns, rowStride, columnStride}; }

  Real &at(std::int64_t row, std::int64_t column) const { return data[row * rowStride + column * columnStride]; }
  Matrix transposed() const { return {data, columns, rows, columnStride, rowStride}; }
};

namespace detail {

constexpr std::int64_t kTileRows = 8;

// Rows [begin, end) of c += a b, where the columns of b and of c are contiguous.
void multiplyRows(const Matrix<const float> &a, const Matrix<const float> &b, const Matrix<float> &c,
                  std::int64_t begin, std::int64_t end);
void multiplyRows(const Matrix<const double> &a, const Matrix<const double> &b, const Matrix<double> &c,
                  std::int64_t begin, std::int64_t end);

} // namespace detail

// c += a b. The columns of c are contiguous.
template <typename Real>
void multiplyAdd(Matrix<const std::type_identity_t<Real>> a, Matrix<const std::type_identity_t<Real>> b,
                 Matrix<Real> c) {
  std::vector<Real> copy;
  if (b.columnStride != 1) { // a transposed matrix: its copy has contiguous columns
    copy.resize(static_cast<std::size_t>(b.rows * b.columns));
    const Matrix<Real> rows(copy.data(), b.rows, b.columns);
    parallelFor(b.rows, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row)
        for (std::int64_t column = 0; column < b.columns; ++column)
          rows.at(row, column) = b.at(row, column);
    });
    b = rows;
  }
  // Each thread gets whole tiles.
  parallelFor((c.rows + detail::kTileRows - 1) / detail::kTileRows, [&](std::int64_t begin, std::int64_t end) {
    detail::multiplyRows(a, b, c, begin * detail::kTileRows, std::min(end * detail::kTileRows, c.rows));
  });
}

} // namespace example
