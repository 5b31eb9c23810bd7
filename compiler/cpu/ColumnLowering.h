// tile.reduce and tile.shift: what goes along the columns of a tile in lanes, where each column is one vector.
// Thread-safety: none beyond the builder's.
#pragma once

#include "compiler/cpu/CpuBuilder.h"
#include "compiler/cpu/TileStorage.h"
#include "compiler/dialect/Tile.h"

namespace nsa::cpu {

// A tile of floats, and how it lies.
struct ColumnSource {
  mlir::Value tile; // pointer
  TileStorage storage;
};

// `result` has one value per row.
void lowerReduce(CpuBuilder &b, tile::ReduceKind kind, const ColumnSource &source, mlir::Value result);

// `first` has one value per row; `result` lies as the source does and is another buffer.
void lowerShift(CpuBuilder &b, const ColumnSource &source, mlir::Value first, mlir::Value result);

} // namespace nsa::cpu
