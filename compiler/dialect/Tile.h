// The `tile` dialect, into which tile programs are lowered (docs/tile_reference.md).
// Thread-safety: types, attributes and operations of the dialect belong to an MLIRContext. Each compile has its own
// MLIRContext and uses one thread.
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <optional>

#include "compiler/dialect/TileDialect.h.inc"
#include "compiler/dialect/TileEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/TileAttributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "compiler/dialect/TileTypes.h.inc"

namespace nsa::tile {

// The names of the attributes in which passes store their decisions (see the description of the `tile` dialect).
inline constexpr llvm::StringLiteral kWarpsAttr = "tile.warps";
inline constexpr llvm::StringLiteral kLayoutAttr = "tile.layout";
inline constexpr llvm::StringLiteral kStayInSharedAttr = "tile.stay_in_shared";
inline constexpr llvm::StringLiteral kStagesAttr = "tile.stages";
inline constexpr llvm::StringLiteral kNamedAttr = "tile.named";
inline constexpr llvm::StringLiteral kSharedOffsetAttr = "tile.shared_offset";
inline constexpr llvm::StringLiteral kSharedBytesAttr = "tile.shared_bytes";
inline constexpr llvm::StringLiteral kScratchBytesAttr = "tile.scratch_bytes";

// A tile is any value of tensor type.
bool isTile(mlir::Value value);

// Returns whether a tile has rank 1 and one value per column (#tile.column). The other tiles of rank 1 have one value
// per row.
bool isColumnVector(mlir::Type type);

// Returns the layout of a tile. A result of an scf.for or scf.if has the layout of the operation that computes it
// inside the scf.for or scf.if. A tile has no layout before the pass AssignLayouts, and a value that is not a tile
// never has a layout.
std::optional<Layout> layoutOf(mlir::Value tile);

// For what layouts are assigned: a CPU with rows along the vector lanes, a GPU with fragments of tensor cores, or
// either of them with long rows, which lie along the vector lanes of a CPU and across all threads of a GPU. All tiles
// of a kernel are laid out for one of them.
enum class LayoutTarget { kCpu, kGpu, kRows };

// Returns whether `op` works neither on striped tiles nor on uniform ones, so that its kernel cannot have long rows.
bool needsFragments(mlir::Operation *op);

// Returns the layout of a tile for which no operation demands another one.
Layout ordinaryLayout(mlir::Value tile, LayoutTarget target);

// Returns the layout of tiles in memory, which the right side of a dot has: `shared` on a GPU, `row_major` on a CPU.
Layout memoryLayout(LayoutTarget target);

// The range of tensor columns that a tile.load or a tile.store moves.
struct TileColumns {
  int64_t width = 1; // columns of the tile
  // The number of the tile's columns that exist in the tensor, if the number is known at compile time. If `count` is
  // empty, the number of existing columns is computed at run time from `chunk` and `rowColumns`, which is the number of
  // columns in a row of the tensor.
  std::optional<int64_t> count;
  // If a row of the tensor is longer than a tile, the row is divided into chunks of `width` columns, and the tile holds
  // chunk number `chunk`. If the tile begins at column 0 of the row, `chunk` is null.
  mlir::Value chunk;
  mlir::Value rowColumns;
};

} // namespace nsa::tile

#include "compiler/dialect/TileInterfaces.h.inc"

#define GET_OP_CLASSES
#include "compiler/dialect/TileOps.h.inc"
