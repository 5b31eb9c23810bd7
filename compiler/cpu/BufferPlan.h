// Assigns each tile of a function an offset in scratch memory, in two steps. In the first step, values that are never
// alive at the same time are merged into one buffer if they are of these kinds: the value of a loop with its initial
// and next values, the results of an scf.if with the values that its arms yield, a dot with its accumulator, and a map
// with its first operand of the same storage. In the second step, buffers whose lifetimes do not overlap share the same
// memory. A value that is defined outside of a loop and used in it is alive during all iterations of the loop.
// Thread-safety: a BufferPlan is owned by one lowering and immutable after `make`.
#pragma once

#include "compiler/cpu/TileStorage.h"
#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <vector>

namespace nsa::cpu {

// Returns whether all elements of the tile are zero constants. A tile.dot whose accumulator is a tile of zeros starts
// in cleared registers, and the tile of zeros needs no memory.
bool isZeroTile(mlir::Value tile);

// Returns the tile.map that computes `tile` if the dots can apply the map themselves: only dots read its result, only
// as their accumulator, and the map changes a single tile of the result's shape, with values per row as its only other
// operands. Returns null in all other cases. A dot applies such a map to each sum with which it starts, so the result
// of the map needs no memory.
tile::MapOp accumulatorMap(mlir::Value tile);

// Returns the tile in memory with whose elements the sums of a dot start: the accumulator of the dot, or the tile that
// the accumulator's map reads. Returns null if there is no such tile.
mlir::Value accumulatorSource(tile::DotOp dot);

// A copy of a whole tile from one offset in scratch memory to another.
struct TileCopy {
  TileStorage storage;
  int64_t toOffset = 0;
  int64_t fromOffset = 0;
};

class BufferPlan {
public:
  // Plans the buffers of a function. The tiles of the function must have layouts. The regions in the function must
  // belong to scf.if, scf.for or tile operations.
  static BufferPlan make(mlir::func::FuncOp function, int64_t lanes);

  // Returns false for a tile that no operation reads from memory. A tile without a buffer has no offset.
  bool hasBuffer(mlir::Value tile) const { return indices.contains(tile); }
  // The byte offset of the tile in scratch memory, a multiple of 64.
  int64_t offsetOf(mlir::Value tile) const { return offsets[buffer[indices.at(tile)]]; }
  const TileStorage &storageOf(mlir::Value tile) const { return storages[indices.at(tile)]; }
  // The bytes of scratch memory for all tiles, including the temporary copies that are needed when tiles swap places.
  int64_t scratchBytes() const { return tileBytes + asideBytes; }

  // Returns the copies that give the tiles in `to` the values of the tiles in `from`, in an order that has the effect
  // of copying all tiles at once. Values that are not tiles are skipped.
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
  // `conflicts` and `apart` have one entry per buffer: `conflicts` are values that must not be in the buffer, and
  // `apart` are values whose buffers must not overlap with it.
  std::vector<llvm::BitVector> conflicts;
  std::vector<llvm::BitVector> apart;
  std::vector<int64_t> offsets; // by buffer
  int64_t tileBytes = 0;
  int64_t asideBytes = 0;
};

// Calls `visit(to, from)` for each group of values that an operation passes on at once: the initial values of a loop,
// the values that its body yields, and the values that the arms of a branch yield.
void forEachHandover(mlir::Operation *op, llvm::function_ref<void(mlir::ValueRange, mlir::ValueRange)> visit);

} // namespace nsa::cpu
