// The `tile` dialect: what templates/tile/*.mlir are written in (docs/tile_reference.md).
// Everything here belongs to an MLIRContext; one context per compile, used by one thread.
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
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

// The attributes in which passes record their decisions (see the dialect's description).
inline constexpr llvm::StringLiteral kWarpsAttr = "tile.warps";
inline constexpr llvm::StringLiteral kLayoutAttr = "tile.layout";
inline constexpr llvm::StringLiteral kStayInSharedAttr = "tile.stay_in_shared";
inline constexpr llvm::StringLiteral kStagesAttr = "tile.stages";
inline constexpr llvm::StringLiteral kRingAttr = "tile.ring";
inline constexpr llvm::StringLiteral kSharedOffsetAttr = "tile.shared_offset";
inline constexpr llvm::StringLiteral kSharedBytesAttr = "tile.shared_bytes";
inline constexpr llvm::StringLiteral kScratchBytesAttr = "tile.scratch_bytes";

// Columns that a list may hold (`sel_count` of the specification).
inline constexpr int64_t kMostSlots = 64;

// A tile is any value of tensor type.
bool isTile(mlir::Value value);

// The layout of a tile, followed through scf.for and scf.if to the operations that make it.
// None before AssignLayouts, and for values that are no tiles.
std::optional<Layout> layoutOf(mlir::Value tile);

// The columns that a load or a store moves.
struct TileColumns {
  int64_t width = 1; // of the tile
  // How many of them exist, where that is known: `columns`, or all. Where it is not, what `rowColumns` leaves.
  std::optional<int64_t> count;
  // The tile is this chunk of its rows, `width` columns each; null: rows begin where the tile does.
  mlir::Value chunk;
  mlir::Value rowColumns;
};

} // namespace nsa::tile

#define GET_OP_CLASSES
#include "compiler/dialect/TileOps.h.inc"
