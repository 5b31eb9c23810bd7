// What the tests of the interpreter share: tensors of given numbers, and heads of programs.
#pragma once

#include "tests/harness/tile/interpreted.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace nsa::test::tile {

inline TileTensor tensorOf(std::vector<int64_t> shape, const std::vector<double> &values,
                           Element element = Element::kF32) {
  TileTensor tensor{element, std::move(shape), {}};
  for (const double value : values)
    tensor.cells.push_back({value, 0});
  return tensor;
}

inline std::vector<double> valuesOf(const TileTensor &tensor) {
  std::vector<double> values;
  for (const Cell &cell : tensor.cells)
    values.push_back(cell.value);
  return values;
}

// The index of the block's rows.
inline constexpr const char *kRows = "let at = tile * 2 + iota(row) below rows\n";

// A program of one block of `rows` rows with the statements `body`. The tensors are x[row; c: 4] and y[row; c: 4].
inline std::string program(const std::string &body, const std::string &declarations = "") {
  return "kernel p\ngrid tile = ceildiv(rows, 2), 1, 1\nthreads 32\naxis row = 2, c = 4, e = 4, two = 2 outer\n"
         "tensor x[row; c], y[row; c]\nscalar rows: i32\n" +
         declarations + "\n" + body + "\n";
}

// A call with x = 1, 2, 3, .. in `rows` rows, and y = -1.
inline TileCall callOf(int64_t rows) {
  TileCall call;
  std::vector<double> numbers;
  for (int64_t i = 0; i < rows * 4; ++i)
    numbers.push_back(static_cast<double>(i + 1));
  call.tensors["x"] = tensorOf({rows, 4}, numbers);
  call.tensors["y"] = tensorOf({rows, 4}, std::vector<double>(numbers.size(), -1));
  call.scalars["rows"] = static_cast<double>(rows);
  return call;
}

} // namespace nsa::test::tile
