// Lowers tile.reduce and tile.shift, which work along the columns of a tile in lanes. Each column of a panel is one
// vector. Thread-safety: as the CpuBuilder.
#pragma once

#include "compiler/cpu/CpuBuilder.h"
#include "compiler/cpu/TileStorage.h"
#include "compiler/dialect/Tile.h"

namespace nsa::cpu {

// A tile of floats and its storage.
struct ColumnSource {
  mlir::Value tile; // pointer
  TileStorage storage;
};

// Reduces each row of the source. `result` points to a tile that takes one value per row.
void lowerReduce(CpuBuilder &b, tile::ReduceKind kind, const ColumnSource &source, mlir::Value result);

// Moves the columns of the source by one. `first` points to a tile that holds the first column, one value per row.
// `result` has the storage of `source.tile`, but is a different buffer.
void lowerShift(CpuBuilder &b, const ColumnSource &source, mlir::Value first, mlir::Value result);

} // namespace nsa::cpu
