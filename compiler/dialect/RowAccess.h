// What the operations that move a tile row by row have in common: their rules, and the columns that they move.
// Only compiler/dialect uses this header.
#pragma once

#include "compiler/dialect/Tile.h"

namespace nsa::tile {

inline int64_t columnsOf(mlir::RankedTensorType tile) { return tile.getRank() == 2 ? tile.getDimSize(1) : 1; }

// Returns whether all chunks of rows with this many columns are known to be whole. Only constants are known.
bool isMultiple(mlir::Value columns, int64_t width);

// Checks the region that tells the place of each row. The region of a store with places has a second argument.
mlir::LogicalResult verifyRows(mlir::Operation *op, mlir::Region &rows, ViewType view, bool isPlaced = false);

template <typename Access> TileColumns tileColumns(Access access, mlir::Type tile) {
  TileColumns result;
  result.width = columnsOf(mlir::cast<mlir::RankedTensorType>(tile));
  result.chunk = access.getChunk();
  result.rowColumns = access.getRowColumns();
  if (!result.chunk)
    result.count = access.getColumns().value_or(result.width);
  else if (isMultiple(result.rowColumns, result.width))
    result.count = result.width;
  return result;
}

template <typename Access> mlir::LogicalResult verifyRowAccess(Access access, mlir::Type type) {
  auto tile = mlir::cast<mlir::RankedTensorType>(type);
  ViewType view = access.getView().getType();
  std::optional<uint64_t> columns = access.getColumns();
  const bool isStore = std::is_same_v<Access, StoreOp>;
  if (view.isGradient() && !isStore)
    return access.emitOpError() << "reads gradients, which a program only stores";
  if (mlir::Type element = isStore ? view.getStoredType() : view.getElementType(); tile.getElementType() != element)
    return access.emitOpError() << "moves elements of " << element << " to or from a tile of " << tile.getElementType();
  if (columns && (*columns < 1 || static_cast<int64_t>(*columns) > columnsOf(tile)))
    return access.emitOpError() << "columns(" << *columns << ") is not in 1 .. " << columnsOf(tile)
                                << ", the tile's columns";
  if (bool(access.getChunk()) != bool(access.getRowColumns()))
    return access.emitOpError("has the number of a chunk without the columns of a row, or these without it");
  if (columns && access.getChunk())
    return access.emitOpError("has both columns and a chunk, which says them of the row");
  return mlir::success();
}

} // namespace nsa::tile
