// tile.load and tile.store: rows of tensors to and from tiles in scratch, converted on the way.
// A tile in lanes goes through a staging area of one panel, row by row, and is transposed in registers.
// Memory is touched only at columns that exist of rows that exist.
// Thread-safety: none beyond the builder's.
#pragma once

#include "compiler/cpu/CpuBuilder.h"
#include "compiler/cpu/TileStorage.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace nsa::cpu {

// Where the row of a tensor starts, and whether it exists.
struct RowAddress {
  mlir::Value pointer;
  mlir::Value exists;
};

struct RowTransfer {
  mlir::Type element;         // of the tensor: bf16, f16, f32 or i32
  int64_t columns = 1;        // that exist in the tensor
  mlir::Value runtimeColumns; // if given, how many of `columns` do: an i64
  TileStorage storage;        // of the tile
  mlir::Value tile;           // pointer
  mlir::Value staging;        // pointer; needed when stagingBytes() is not 0
  // Emits the code that finds a row of the tile (its number is an i32) at the builder's position.
  llvm::function_ref<RowAddress(mlir::Value)> rowAddress;
};

// Scratch that a transfer of this tile needs beside it.
int64_t stagingBytes(const TileStorage &storage);

// The size of `element` as it lies in tensors: integers for the 16 bit floats.
mlir::Type memoryType(mlir::Type element);

// One element, as it is carried in registers (f32 or i32).
mlir::Value loadElement(CpuBuilder &b, mlir::Value pointer, mlir::Type element);

void lowerLoadRows(CpuBuilder &b, const RowTransfer &transfer);
void lowerStoreRows(CpuBuilder &b, const RowTransfer &transfer);

} // namespace nsa::cpu
