// Lowers tile.reduce for tiles by panels and by rows (see TileStorage.h), and tile.shift for tiles by panels.
// Thread-safety: as the CpuBuilder.
#pragma once

#include "compiler/cpu/CpuBuilder.h"
#include "compiler/cpu/TileStorage.h"
#include "compiler/dialect/Tile.h"

namespace nsa::cpu {

// The address of a tile of floats, and how the tile is stored.
struct ColumnSource {
  mlir::Value tile; // pointer
  TileStorage storage;
};

// Reduces each row of the source to one value, or each column if `ofColumns` is set. `result` points to a tile that
// receives the values. The last column can be taken only of a tile by panels.
void lowerReduce(CpuBuilder &b, tile::ReduceKind kind, bool ofColumns, const ColumnSource &source, mlir::Value result);

// Moves every column of the source one place to the right and drops the last column. `first` points to a tile that
// holds the first column of the result, one value per row. `result` is stored like `source.tile`, but in a different
// buffer.
void lowerShift(CpuBuilder &b, const ColumnSource &source, mlir::Value first, mlir::Value result);

} // namespace nsa::cpu
