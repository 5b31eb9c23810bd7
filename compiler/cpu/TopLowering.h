// The best columns of each row (tile.top_create, top_insert, top_next) as loops of vectors.
// A panel of `lanes` rows keeps, for each slot, a vector of ranks and one of column numbers, best slot first. A score's
// rank is an integer that orders as the score does (see rankOf). A column that no row of the panel wants costs one
// comparison; any other goes down the slots and changes places with every worse one.
// Thread-safety: none beyond the builder's.
#pragma once

#include "compiler/cpu/CpuBuilder.h"
#include "compiler/cpu/TileStorage.h"
#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/DenseMap.h"

namespace nsa::cpu {

class TopLowering {
public:
  // The lists of `function` lie in scratch from byte `offset` on, a multiple of 64.
  TopLowering(CpuBuilder &b, mlir::func::FuncOp function, int64_t offset);

  int64_t bytes() const { return end - begin; }

  void create(tile::TopCreateOp op, mlir::Value scratch);
  void insert(tile::TopInsertOp op, mlir::Value scratch, const TileStorage &storage, mlir::Value scores,
              mlir::Value first);
  void next(tile::TopNextOp op, mlir::Value scratch, mlir::Value after, mlir::Value result);

private:
  // Of one panel.
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
