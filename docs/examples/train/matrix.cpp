#include "matrix.h"

// The compiler makes one copy of such a function for each level of vectors, and the program takes the copy that fits
// the processor. On other systems the compiler makes one copy, for the processor that its options name.
#if defined(__x86_64__) && defined(__linux__)
#define EACH_VECTOR_LEVEL __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define EACH_VECTOR_LEVEL
#endif

namespace example::detail {
namespace {

constexpr std::int64_t kDepth = 256; // rows of b that a tile reads before the next tile reads the same rows

// 64 bytes of numbers. A processor with shorter vectors takes several of them.
template <typename Real> struct Vector;
template <> struct Vector<float> {
  typedef float type __attribute__((vector_size(64), aligned(4)));
};
template <> struct Vector<double> {
  typedef double type __attribute__((vector_size(64), aligned(8)));
};
template <typename Real> constexpr std::int64_t kTileColumns = 128 / sizeof(Real);

// One whole tile of c += a b: two vectors in each of its rows.
template <typename Real>
[[gnu::always_inline]] inline void multiplyTile(const Real *a, std::int64_t aRow, std::int64_t aColumn, const Real *b,
                                                std::int64_t bRow, Real *c, std::int64_t cRow, std::int64_t depth) {
  using Numbers = typename Vector<Real>::type;
  Numbers sums[kTileRows][2] = {};
  for (std::int64_t k = 0; k < depth; ++k) {
    const Numbers *row = reinterpret_cast<const Numbers *>(b + k * bRow);
    const Numbers left = row[0], right = row[1];
#pragma GCC unroll 8
    for (std::int64_t i = 0; i < kTileRows; ++i) {
      sums[i][0] += a[i * aRow + k * aColumn] * left;
      sums[i][1] += a[i * aRow + k * aColumn] * right;
    }
  }
#pragma GCC unroll 8
  for (std::int64_t i = 0; i < kTileRows; ++i) {
    Numbers *row = reinterpret_cast<Numbers *>(c + i * cRow);
    row[0] += sums[i][0];
    row[1] += sums[i][1];
  }
}

template <typename Real>
[[gnu::always_inline]] inline void multiplyTiles(const Matrix<const Real> &a, const Matrix<const Real> &b,
                                                 const Matrix<Real> &c, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kColumns = kTileColumns<Real>;
  for (std::int64_t first = 0; first < b.rows; first += kDepth) {
    const std::int64_t depth = std::min(kDepth, b.rows - first);
    for (std::int64_t column = 0; column < c.columns; column += kColumns)
      for (std::int64_t row = begin; row < end; row += kTileRows)
        if (row + kTileRows <= end && column + kColumns <= c.columns) {
          multiplyTile(&a.at(row, first), a.rowStride, a.columnStride, &b.at(first, column), b.rowStride,
                       &c.at(row, column), c.rowStride, depth);
        } else { // what is left at the edges of the matrix
          for (std::int64_t i = row; i < std::min(row + kTileRows, end); ++i)
            for (std::int64_t k = first; k < first + depth; ++k)
              for (std::int64_t j = column; j < std::min(column + kColumns, c.columns); ++j)
                c.at(i, j) += a.at(i, k) * b.at(k, j);
        }
  }
}

EACH_VECTOR_LEVEL void multiplyFloats(const Matrix<const float> &a, const Matrix<const float> &b,
                                      const Matrix<float> &c, std::int64_t begin, std::int64_t end) {
  multiplyTiles<float>(a, b, c, begin, end);
}

EACH_VECTOR_LEVEL void multiplyDoubles(const Matrix<const double> &a, const Matrix<const double> &b,
                                       const Matrix<double> &c, std::int64_t begin, std::int64_t end) {
  multiplyTiles<double>(a, b, c, begin, end);
}

} // namespace

void multiplyRows(const Matrix<const float> &a, const Matrix<const float> &b, const Matrix<float> &c,
                  std::int64_t begin, std::int64_t end) {
  multiplyFloats(a, b, c, begin, end);
}

void multiplyRows(const Matrix<const double> &a, const Matrix<const double> &b, const Matrix<double> &c,
                  std::int64_t begin, std::int64_t end) {
  multiplyDoubles(a, b, c, begin, end);
}

} // namespace example::detail
