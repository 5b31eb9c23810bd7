// Assigns each tile of a function an offset in scratch memory. BufferPlan first merges tile values into buffers, and
// then gives each buffer an offset. Two values are merged into one buffer if the two values are never alive at the same
// time and one of them is computed or copied from the other. Only four kinds of pairs of values are merged: a
// loop-carried value and its initial or next value, a result of an scf.if and the value that an arm yields for the
// result, a dot and its accumulator, and a map and an input of the same storage. Two buffers may have overlapping
// memory if their lifetimes do not overlap. A value that is defined outside of a loop and used in the loop is alive
// during all iterations of the loop.
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
// with cleared registers, so the tile of zeros needs no memory.
bool isZeroTile(mlir::Value tile);

// Returns the tile.map that computes `tile`, if a tile.dot can apply the map in registers to the sums with which the
// dot starts. If a tile.dot applies a map in registers, the result of the map needs no memory. accumulatorMap returns
// null if the map's result has no use, or has a use other than as the accumulator of a tile.dot. accumulatorMap also
// returns null unless the map reads exactly one matrix, and this matrix holds floats and has the storage of the map's
// result. All other inputs of the map must be scalars or hold one value per row. accumulatorMap also returns null if
// the map uses the row number or the column number.
tile::MapOp accumulatorMap(mlir::Value tile);

// Returns the tile in memory from which a tile.dot loads its sums at the start. The tile is the accumulator of the dot
// or, if accumulatorMap finds a map for the accumulator, the matrix that the map reads. accumulatorSource returns null
// if the sums of the dot start from zero.
mlir::Value accumulatorSource(tile::DotOp dot);

// A copy of a whole tile from one offset in scratch memory to another.
struct TileCopy {
  TileStorage storage;
  int64_t toOffset = 0;
  int64_t fromOffset = 0;
};

class BufferPlan {
public:
  // Plans the buffers of `function`. All tiles in `function` must have layouts. All regions in `function` must belong
  // to scf.if, scf.for or tile operations.
  static BufferPlan make(mlir::func::FuncOp function, int64_t lanes);

  // Returns whether the plan has a buffer for `tile`. A tile of zeros has no buffer if all its uses are accumulators of
  // a tile.dot. A tile for which accumulatorMap finds a map has no buffer either. The functions offsetOf() and
  // storageOf() must not be called for a tile without a buffer.
  bool hasBuffer(mlir::Value tile) const { return indices.contains(tile); }
  // The byte offset of the tile in scratch memory, a multiple of 64.
  int64_t offsetOf(mlir::Value tile) const { return offsets[buffer[indices.at(tile)]]; }
  const TileStorage &storageOf(mlir::Value tile) const { return storages[indices.at(tile)]; }
  // The bytes of scratch memory for all tiles, including the temporary copies that are needed when tiles swap places.
  int64_t scratchBytes() const { return tileBytes + asideBytes; }

  // Returns the copies that give the tiles in `to` the values of the tiles in `from`. The copies are ordered so that
  // running them one by one has the effect of copying all tiles at once. copies() makes no copy to a value that has
  // no buffer.
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
  // `conflicts` and `apart` have one entry per buffer. `conflicts[b]` is the set of values that must not be merged into
  // buffer b. `apart[b]` is the set of values that may be merged into buffer b, but otherwise must not overlap buffer b
  // in memory. A buffer that holds a value in `conflicts[b]` or `apart[b]` must not overlap buffer b in memory.
  std::vector<llvm::BitVector> conflicts;
  std::vector<llvm::BitVector> apart;
  std::vector<int64_t> offsets; // by buffer
  int64_t tileBytes = 0;
  int64_t asideBytes = 0;
};

// Calls visit(to, from) for each parallel assignment of `op`, which assigns the values `from` to the values `to`. An
// scf.for assigns its initial values and the values that its body yields to its loop-carried values. An scf.if assigns
// the values that each arm yields to its results.
void forEachHandover(mlir::Operation *op, llvm::function_ref<void(mlir::ValueRange, mlir::ValueRange)> visit);

} // namespace nsa::cpu
