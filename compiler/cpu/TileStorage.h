// The storage of a tile in scratch memory:
//   lanes      panels of `lanes` rows. A column of a panel is one vector: element (i, j) is word
//              (i / lanes * columns + j) * lanes + i % lanes. Consecutive columns are consecutive vectors, which is how
//              a register-blocked product reads its left side. A tile of rank 1 is one column.
//   row_major  rows of `rowWords` words, for the right side of a dot, which is read as scalars.
// Every element takes 32 bits: floats are f32 (16-bit types are rounded to them), integers and booleans are i32.
// Thread-safety: values.
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

  // Returns the storage of a value of tensor type, whose layout AssignLayouts has set.
  static TileStorage of(mlir::Value tile, int64_t lanes);

  int64_t panels() const { return (rows + lanes - 1) / lanes; }
  int64_t panelWords() const { return columns * lanes; }
  int64_t rowWords() const { return (columns + lanes - 1) / lanes * lanes; }
  int64_t words() const { return rowMajor ? rows * rowWords() : panels() * panelWords(); }
  int64_t bytes() const { return words() * 4; }

  // Returns whether an element with the same indices has the same address in both storages. If so, an elementwise
  // operation may write its result over its operand.
  bool isSamePlace(const TileStorage &other) const {
    return rows == other.rows && columns == other.columns && rowMajor == other.rowMajor;
  }
};

} // namespace nsa::cpu
