// Assigns each tile of a function an offset in scratch memory, in two steps. The first step merges two values into one
// buffer if the two values are never alive at the same time and one of them is computed or copied from the other. The
// first step considers four kinds of pairs: a loop-carried value and its initial or next value, a result of an scf.if
// and the value that an arm yields for the result, a dot and its accumulator, and a map and an input of the same
// storage. In the second step, buffers whose lifetimes do not overlap share the same memory. A value that is defined
// outside of a loop and used in the loop is alive during all iterations of the loop.
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
// dot starts. If a tile.dot applies a map in registers, the result of the map needs no memory. There are three
// conditions, and accumulatorMap returns null if one of the three does not hold. The first condition is that each use
// of the map's result is the accumulator of a tile.dot. The second condition is that the map reads exactly one matrix,
// which holds floats and has the storage of the map's result; the other inputs of the map are scalars or hold one value
// per row. The third condition is that the map uses neither the row number nor the column number.
tile::MapOp accumulatorMap(mlir::Value tile);

// Returns the tile in memory from which a tile.dot loads its sums at the start. The tile is the accumulator of the dot
// or, if accumulatorMap finds a map for the accumulator, the matrix that the map reads. Returns null if the sums of the
// dot start from zero.
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

  // Returns whether the plan has a buffer for `tile`. A tile that no operation reads from memory has no buffer. The
  // functions offsetOf() and storageOf() must not be called for a tile without a buffer.
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
  // buffer b. `apart[b]` is the set of values that may be merged into buffer b. Two buffers must not overlap in memory
  // if one of them holds a value in the `conflicts` or the `apart` of the other buffer.
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
