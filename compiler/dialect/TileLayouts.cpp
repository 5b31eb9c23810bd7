// Which layouts the operations of the dialect demand and offer. The table in compiler/passes/Passes.td says the same in
// words.
#include "compiler/dialect/Tile.h"

using namespace mlir;
using namespace nsa::tile;

#include "compiler/dialect/TileInterfaces.cpp.inc"

static RankedTensorType typeOf(Value tile) { return cast<RankedTensorType>(tile.getType()); }

Layout nsa::tile::ordinaryLayout(Value tile, LayoutTarget target) {
  if (target == LayoutTarget::kCpu)
    return Layout::Lanes;
  const bool isRowVector = typeOf(tile).getRank() == 1 && !isColumnVector(tile.getType());
  if (target == LayoutTarget::kRows)
    return isRowVector ? Layout::Uniform : Layout::Striped;
  if (isColumnVector(tile.getType()))
    return Layout::Column;
  return isRowVector ? Layout::Row : Layout::Accumulator;
}

Layout nsa::tile::memoryLayout(LayoutTarget target) {
  return target == LayoutTarget::kCpu ? Layout::RowMajor : Layout::Shared;
}

bool nsa::tile::needsFragments(Operation *op) {
  auto reduce = dyn_cast<ReduceOp>(op);
  return isa<DotOp, SumOperandOp, ShiftOp, TopInsertOp, TopNextOp>(op) ||
         (reduce && reduce.getKind() == ReduceKind::Last);
}

bool LoadOp::offersLayout(Layout layout, LayoutTarget target) {
  if (layout == ordinaryLayout(getResult(), target))
    return true;
  return typeOf(getResult()).getRank() == 2 && target != LayoutTarget::kRows &&
         (layout == memoryLayout(target) || (target == LayoutTarget::kGpu && layout == Layout::OperandA));
}

bool MapOp::offersLayout(Layout layout, LayoutTarget target) {
  if (layout == ordinaryLayout(getResult(), target))
    return true;
  // The fragments of an accumulator, once rounded, are the fragments of a left side. So a map can write either layout.
  RankedTensorType type = typeOf(getResult());
  return target == LayoutTarget::kGpu && layout == Layout::OperandA && type.getRank() == 2 &&
         !type.getElementType().isF32();
}

bool ConvertLayoutOp::offersLayout(Layout layout, LayoutTarget target) { return layout == memoryLayout(target); }

// Whether a dot reads this operand from memory on every target.
static bool isReadFromMemory(OpOperand &operand) {
  auto dot = dyn_cast<DotOp>(operand.getOwner());
  return dot && (&operand == &dot.getBMutable() || (&operand == &dot.getAMutable() && dot.getTransposeA()));
}

Layout DotOp::getOperandLayout(OpOperand &operand, LayoutTarget target) {
  if (isReadFromMemory(operand))
    return memoryLayout(target);
  Value tile = operand.get();
  if (&operand != &getAMutable() || target == LayoutTarget::kCpu)
    return ordinaryLayout(tile, target);
  if (tile.getDefiningOp<ConvertLayoutOp>())
    return Layout::Shared;
  auto load = tile.getDefiningOp<LoadOp>();
  // There is no ldmatrix for f32. A tile that is loaded for products alone is read from shared memory, and another one
  // is read from the registers of the operation that made it.
  if (typeOf(tile).getElementType().isF32())
    return load && llvm::all_of(tile.getUsers(), llvm::IsaPred<DotOp>) ? Layout::Shared : Layout::Accumulator;
  // A tile that another product reads in shared memory is read there by this one, too.
  auto stays = load ? load->getAttrOfType<BoolAttr>(kStayInSharedAttr) : nullptr;
  bool isShared = load && ((stays && stays.getValue()) || llvm::any_of(tile.getUses(), isReadFromMemory));
  return isShared ? Layout::Shared : Layout::OperandA;
}
