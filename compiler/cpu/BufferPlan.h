// Gives every tile of a function its place in scratch memory.
// Two steps. Values that can be one buffer become one: a loop's value and its initial and next values, the results of
// an scf.if and what its arms yield, a dot and its accumulator, a map and its first operand of the same storage, as
// long as no two of them are alive at once. Then buffers whose lifetimes are apart share memory.
// Liveness follows the structured control flow exactly: a value from outside a loop is alive through its iterations.
// Owned by one lowering. Thread-safety: immutable after `make`.
#pragma once

#include "compiler/cpu/TileStorage.h"
#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <vector>

namespace nsa::cpu {

// The accumulator of a dot that starts from zero: the products start in cleared registers and no tile exists.
bool isZeroTile(mlir::Value tile);

// A map that is read as the accumulator of dots only, and changes one tile of their shape by at most its rows: the dots
// apply it to the sums that they start from, and no tile exists. Null when `tile` is made by anything else.
tile::MapOp accumulatorMap(mlir::Value tile);

// The tile in memory that a dot starts from, if there is one: the accumulator or what its map reads.
mlir::Value accumulatorSource(tile::DotOp dot);

// One copy of a whole tile between two places in scratch.
struct TileCopy {
  TileStorage storage;
  int64_t toOffset = 0;
  int64_t fromOffset = 0;
};

class BufferPlan {
public:
  // Tiles must have layouts, and regions must be scf.if, scf.for or those of tile operations.
  static BufferPlan make(mlir::func::FuncOp function, int64_t lanes);

  // False for tiles that nobody reads from memory; they have no offset.
  bool hasBuffer(mlir::Value tile) const { return indices.contains(tile); }
  // Byte offset into scratch, a multiple of 64.
  int64_t offsetOf(mlir::Value tile) const { return offsets[buffer[indices.at(tile)]]; }
  const TileStorage &storageOf(mlir::Value tile) const { return storages[indices.at(tile)]; }
  // Including the room for tiles that step aside while others move.
  int64_t scratchBytes() const { return tileBytes + asideBytes; }

  // The copies, in order, that make `to` what `from` is, all at once (tiles among other values; the others are
  // skipped).
  std::vector<TileCopy> copies(mlir::ValueRange to, mlir::ValueRange from) const;

private:
  explicit BufferPlan(int64_t lanes) : lanes(lanes) {}
  void number(mlir::Value value);
  void analyse(mlir::Block &block, llvm::BitVector &live);
  void analyse(mlir::Operation &op, llvm::BitVector &live);
  void define(mlir::ValueRange values, llvm::BitVector &live);
  void use(mlir::ValueRange values, llvm::BitVector &live) const;
  void forbidSharing(mlir::Value a, mlir::Value b);
  void keepApart(mlir::ValueRange a, mlir::ValueRange b);
  void coalesce(mlir::func::FuncOp function);
  bool merge(mlir::Value a, mlir::Value b);
  void place();
  int64_t bytesAside(mlir::ValueRange to, mlir::ValueRange from) const;

  int64_t lanes;
  llvm::DenseMap<mlir::Value, int> indices;
  std::vector<TileStorage> storages;    // by value
  std::vector<int> buffer;              // by value: the value that stands for its buffer
  std::vector<llvm::BitVector> members; // by buffer: its values
  // By buffer: values that must not be in it, and values whose buffers, if they are others, must not overlap with it.
  std::vector<llvm::BitVector> conflicts;
  std::vector<llvm::BitVector> apart;
  std::vector<int64_t> offsets; // by buffer
  int64_t tileBytes = 0;
  int64_t asideBytes = 0;
};

// The values that an operation hands on to another place at once: what a loop starts with, what its body yields, and
// what the arms of a branch yield. Calls `visit(to, from)` for each.
void forEachHandover(mlir::Operation *op, llvm::function_ref<void(mlir::ValueRange, mlir::ValueRange)> visit);

} // namespace nsa::cpu
