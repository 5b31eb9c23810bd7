// Lowers tile.load and tile.store: copies rows between tensors and tiles in scratch memory, and converts the elements.
// A tile that is stored as panels (TileStorage.h) is first copied row by row into a staging area of one panel, and then
// transposed in registers. The generated code accesses only rows and columns that exist in the tensor.
// Thread-safety: as the CpuBuilder.
#pragma once

#include "compiler/cpu/CpuBuilder.h"
#include "compiler/cpu/TileStorage.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace nsa::cpu {

// The address of a row of a tensor, and whether the row exists.
struct RowAddress {
  mlir::Value pointer;
  mlir::Value exists;
};

// What the flags of a view of gradients say. The values of an ordinary view are null.
struct GradientFlags {
  mlir::Value isPlain;      // i1: elements of the view's type are overwritten
  mlir::Value holdsFloats;  // i1: the elements are f32
  mlir::Value adds;         // i1: results are added to what the memory holds
  mlir::Value elementBytes; // i64

  // Reads the flags (runtime/base/manifest.h) of a view whose element type is `element`, bf16, f16 or f32.
  static GradientFlags of(CpuBuilder &b, mlir::Value flags, mlir::Type element);
  explicit operator bool() const { return bool(isPlain); }
};

struct RowTransfer {
  mlir::Type element;         // of the tensor: bf16, f16, f32 or i32
  GradientFlags gradient;     // of the tensor that a store writes
  int64_t columns = 1;        // columns that exist in the tensor
  mlir::Value runtimeColumns; // if given, how many of `columns` exist, as an i64
  TileStorage storage;        // the storage of the tile
  mlir::Value tile;           // pointer
  mlir::Value staging;        // pointer; needed when stagingBytes() is not 0
  // Emits code, at the builder's insertion point, that computes the address of the row of the tensor that belongs to a
  // row of the tile. The argument of `rowAddress` is the number of the tile's row, an i32.
  llvm::function_ref<RowAddress(mlir::Value)> rowAddress;
};

// Returns the bytes of scratch memory that the copy of a tile needs in addition to the tile itself.
int64_t stagingBytes(const TileStorage &storage);

// Returns the type in which an element of a tensor is loaded and stored: for a 16-bit float an integer of 16 bits.
mlir::Type memoryType(mlir::Type element);

// Loads one element and converts it to the type that registers hold (f32 or i32).
mlir::Value loadElement(CpuBuilder &b, mlir::Value pointer, mlir::Type element);

// Emits the copy from a tensor to a tile. Elements of the tile whose row or column does not exist in the tensor become
// zero.
void lowerLoadRows(CpuBuilder &b, const RowTransfer &transfer);
// Emits the copy from a tile to a tensor. Elements of the tile whose row or column does not exist in the tensor are not
// written.
void lowerStoreRows(CpuBuilder &b, const RowTransfer &transfer);

// Emits the copy of a tile from the layout `lanes` to the layout `row_major` at `target`. `staging` is memory for one
// panel, conversionBytes() long.
void lowerToRowMajor(CpuBuilder &b, const TileStorage &storage, mlir::Value tile, mlir::Value target,
                     mlir::Value staging);
int64_t conversionBytes(const TileStorage &storage);

} // namespace nsa::cpu
