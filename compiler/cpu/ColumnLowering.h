// Lowers tile.reduce and tile.shift for tiles that are stored as panels (see TileStorage.h). A panel is a group of
// `lanes` rows, and each column of a panel is one vector.
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

// Reduces each row of the source. `result` points to a tile that receives one value per row.
void lowerReduce(CpuBuilder &b, tile::ReduceKind kind, const ColumnSource &source, mlir::Value result);

// Reduces each column of the source. `result` points to a tile that receives one value per column. `kind` is a maximum
// or a sum.
void lowerReduceRows(CpuBuilder &b, tile::ReduceKind kind, const ColumnSource &source, mlir::Value result);

// Moves every column of the source one place to the right and drops the last column. `first` points to a tile that
// holds the first column of the result, one value per row. `result` is stored like `source.tile`, but in a different
// buffer.
void lowerShift(CpuBuilder &b, const ColumnSource &source, mlir::Value first, mlir::Value result);

} // namespace nsa::cpu
