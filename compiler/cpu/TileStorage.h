// A tile is stored in scratch memory in one of two layouts. In the layout `lanes`, the tile is divided into panels of
// `lanes` rows, and each column of a panel is one vector. Neighbouring columns of a panel are neighbouring vectors, so
// element (i, j) is word (i / lanes * columns + j) * lanes + i % lanes. The left side of a dot has the layout `lanes`,
// because a dot reads its left side as vectors. In the layout `row_major`, each row of the tile takes `rowWords` words.
// The right side of a dot has the layout `row_major`, because a dot reads its right side as scalars. So has a left side
// that is given transposed: its rows are the vectors that a dot reads. A tile of rank 1, with one value per row or per
// column, is stored as one column. Every element takes 32 bits: integers and booleans are stored as i32, and all floats
// as f32. The values of 16-bit floats are rounded to their type before they are stored. Thread-safety: TileStorage is a
// value type.
#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace nsa::cpu {

struct TileStorage {
  int64_t rows = 0;
  int64_t columns = 1;
  int64_t lanes = 0;
  bool rowMajor = false;
  bool isInteger = false;

  // Returns the storage of `tile`. The pass AssignLayouts must have set the layout of `tile`.
  static TileStorage of(mlir::Value tile, int64_t lanes);

  int64_t panels() const { return (rows + lanes - 1) / lanes; }
  int64_t panelWords() const { return columns * lanes; }
  int64_t rowWords() const { return (columns + lanes - 1) / lanes * lanes; }
  int64_t words() const { return rowMajor ? rows * rowWords() : panels() * panelWords(); }
  int64_t bytes() const { return words() * 4; }

  // Returns whether element (i, j) is at the same offset in this storage and in `other`. An elementwise operation may
  // write its result over an operand if isSamePlace is true for the storages of the result and the operand.
  bool isSamePlace(const TileStorage &other) const {
    return rows == other.rows && columns == other.columns && rowMajor == other.rowMajor;
  }
};

} // namespace nsa::cpu
