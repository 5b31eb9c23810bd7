// Lowers the operations on lists of the best columns (tile.top_create, top_insert, top_next) to loops of vector
// instructions. Each row of a tile has a list, and the rows are processed in panels of `lanes` rows. For each panel, a
// slot of the lists is stored as two vectors with one element per row: a vector of ranks and a vector of column
// numbers. The best slot is first. The rank of a score is an integer; a higher score has a higher rank (see rankOf). A
// new column is first compared with the worst slot of the lists, and if no row's list takes the column, this vector
// comparison is its whole cost. If the new column enters the list of at least one row, a loop over all slots inserts
// it: the loop swaps the new column with each worse column.
// Thread-safety: as the CpuBuilder.
#pragma once

#include "compiler/cpu/CpuBuilder.h"
#include "compiler/cpu/TileStorage.h"
#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/DenseMap.h"

namespace nsa::cpu {

class TopLowering {
public:
  // The lists that `function` uses are stored in scratch memory from byte `offset` on. `offset` is a multiple of 64.
  TopLowering(CpuBuilder &b, mlir::func::FuncOp function, int64_t offset);

  // Returns the bytes of scratch memory that all lists take.
  int64_t bytes() const { return end - begin; }

  void create(tile::TopCreateOp op, mlir::Value scratch);
  void insert(tile::TopInsertOp op, mlir::Value scratch, const TileStorage &storage, mlir::Value scores,
              mlir::Value first);
  void next(tile::TopNextOp op, mlir::Value scratch, mlir::Value after, mlir::Value result);

private:
  // An Offer has one column for each row of a panel, as a vector of ranks and a vector of column numbers. An Offer is
  // either a new column or the content of a slot.
  struct Offer {
    mlir::Value rank, column;
  };

  int64_t panels(tile::TopType type) const { return (type.getRows() + b.lanes - 1) / b.lanes; }
  int64_t vectorBytes() const { return b.lanes * 4; }
  int64_t slotBytes() const { return 2 * vectorBytes(); }
  int64_t panelBytes(tile::TopType type) const { return type.getSlots() * slotBytes(); }
  mlir::Value placeOf(mlir::Value lists, mlir::Value scratch);
  mlir::Value loadVector(mlir::Type element, mlir::Value pointer);
  void storeVector(mlir::Value vector, mlir::Value pointer);
  Offer loadSlot(mlir::Value slot);
  mlir::Value isBetter(const Offer &a, const Offer &b);
  mlir::Value isAny(mlir::Value mask);
  mlir::Value rankOf(mlir::Value scores);
  void offer(const Offer &offered, mlir::Value panel, tile::TopType type);

  CpuBuilder &b;
  llvm::DenseMap<mlir::Value, int64_t> offsets;
  int64_t begin;
  int64_t end;
};

} // namespace nsa::cpu
