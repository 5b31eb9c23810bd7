// A tile is stored in scratch memory by panels or by rows. In the layout `lanes`, the tile is divided into panels of
// `lanes` rows, and each column of a panel is one vector. Neighbouring columns of a panel are neighbouring vectors, so
// element (i, j) is word (i / lanes * columns + j) * lanes + i % lanes. The left side of a dot has the layout `lanes`,
// because a dot reads its left side as vectors. In the layouts `row_major` and `striped`, each row of the tile takes
// `rowWords` words, which are whole vectors. The words behind the last column may hold anything. The right side of a
// dot has the layout `row_major`, because a dot reads its right side as scalars. So has a left side that is given
// transposed: its rows are the vectors that a dot reads. The layout `striped` is for kernels without dots, which
// compute vectors of neighbouring columns. A tile of rank 1, with one value per row or per column, is stored as one
// column, in every layout. Every element takes 32 bits: integers and booleans are stored as i32, and all floats as f32.
// The values of 16-bit floats are rounded to their type before they are stored. Thread-safety: TileStorage is a value
// type.
#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace nsa::cpu {

struct TileStorage {
  int64_t rows = 0;
  int64_t columns = 1;
  int64_t lanes = 0;
  bool rowMajor = false; // `row_major`, or a matrix that is `striped`
  bool isInteger = false;

  // Returns the storage of `tile`. The pass AssignLayouts must have set the layout of `tile`.
  static TileStorage of(mlir::Value tile, int64_t lanes);

  int64_t panels() const { return (rows + lanes - 1) / lanes; }
  int64_t panelWords() const { return columns * lanes; }
  int64_t rowWords() const { return (columns + lanes - 1) / lanes * lanes; }
  // A slice is a run of neighbouring vectors: a panel with a vector for each column, or a row of a tile by rows.
  int64_t slices() const { return rowMajor ? rows : panels(); }
  int64_t sliceWords() const { return rowMajor ? rowWords() : panelWords(); }
  int64_t sliceVectors() const { return sliceWords() / lanes; }
  int64_t words() const { return slices() * sliceWords(); }
  int64_t bytes() const { return words() * 4; }

  // Returns whether element (i, j) is at the same offset in this storage and in `other`. An elementwise operation may
  // write its result over an operand if isSamePlace is true for the storages of the result and the operand.
  bool isSamePlace(const TileStorage &other) const {
    return rows == other.rows && columns == other.columns && rowMajor == other.rowMajor;
  }
};

} // namespace nsa::cpu
