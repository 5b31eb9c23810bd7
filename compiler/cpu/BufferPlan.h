// Gives every tile of a function its place in scratch memory, in two steps. First, values that can share one buffer are
// merged, as long as no two of them are alive at once: the value of a loop with its initial and next values, the
// results of an scf.if with the values that its arms yield, a dot with its accumulator, and a map with its first
// operand of the same storage. Then buffers whose lifetimes do not meet share memory. Liveness follows the structured
// control flow exactly. A value from outside a loop is alive through all of its iterations.
// Thread-safety: owned by one lowering; immutable after `make`.
#pragma once

#include "compiler/cpu/TileStorage.h"
#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <vector>

namespace nsa::cpu {

// Whether the tile is zeros. A dot whose accumulator is such a tile starts in cleared registers, and the tile needs no
// memory.
bool isZeroTile(mlir::Value tile);

// The map that makes `tile`, if only dots read its result, as their accumulator, and if it changes one tile of their
// shape by values of the tile's rows at most. The dots then apply the map to the sums from which they start, and the
// tile needs no memory. Else null.
tile::MapOp accumulatorMap(mlir::Value tile);

// The tile in memory from which a dot starts, if there is one: its accumulator, or the tile that the accumulator's map
// reads.
mlir::Value accumulatorSource(tile::DotOp dot);

// One copy of a whole tile between two places in scratch.
struct TileCopy {
  TileStorage storage;
  int64_t toOffset = 0;
  int64_t fromOffset = 0;
};

class BufferPlan {
public:
  // Plans the buffers of a function. Its tiles must have layouts. Its regions must belong to scf.if, scf.for or tile
  // operations.
  static BufferPlan make(mlir::func::FuncOp function, int64_t lanes);

  // False for tiles that no operation reads from memory. They have no offset.
  bool hasBuffer(mlir::Value tile) const { return indices.contains(tile); }
  // The byte offset of the tile in scratch, a multiple of 64.
  int64_t offsetOf(mlir::Value tile) const { return offsets[buffer[indices.at(tile)]]; }
  const TileStorage &storageOf(mlir::Value tile) const { return storages[indices.at(tile)]; }
  // Bytes of scratch for all tiles, and for tiles that are copied aside while others move.
  int64_t scratchBytes() const { return tileBytes + asideBytes; }

  // The copies that give the tiles in `to` the values of the tiles in `from`, in an order that has the effect of
  // copying all at once. Other values are skipped.
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
  // By buffer: `conflicts` are values that must not be in the buffer, and `apart` are values whose buffers must not
  // overlap with it.
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
