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
  return typeOf(tile).getRank() == 1 ? Layout::Row : Layout::Accumulator;
}

bool LoadOp::offersLayout(LayoutTarget target, Layout layout) {
  if (layout == ordinaryLayout(getResult(), target))
    return true;
  if (typeOf(getResult()).getRank() != 2)
    return false;
  return target == LayoutTarget::kCpu ? layout == Layout::RowMajor
                                      : layout == Layout::OperandA || layout == Layout::Shared;
}

bool MapOp::offersLayout(LayoutTarget target, Layout layout) {
  if (layout == ordinaryLayout(getResult(), target))
    return true;
  // The fragments of an accumulator, once rounded, are the fragments of a left side. So a map can write either layout.
  RankedTensorType type = typeOf(getResult());
  return target == LayoutTarget::kGpu && layout == Layout::OperandA && type.getRank() == 2 &&
         !type.getElementType().isF32();
}

static Layout leftSide(Value tile, LayoutTarget target) {
  if (target == LayoutTarget::kCpu)
    return Layout::Lanes;
  auto load = tile.getDefiningOp<LoadOp>();
  if (!typeOf(tile).getElementType().isF32()) {
    auto stays = load ? load->getAttrOfType<BoolAttr>(kStayInSharedAttr) : nullptr;
    return stays && stays.getValue() ? Layout::Shared : Layout::OperandA;
  }
  // There is no ldmatrix for f32. A loaded tile is read from shared memory, and a computed tile is read from the
  // registers in which it was computed.
  return load ? Layout::Shared : Layout::Accumulator;
}

void DotOp::demandLayouts(LayoutTarget target, LayoutDemand demand) {
  demand(getA(), leftSide(getA(), target));
  demand(getB(), target == LayoutTarget::kCpu ? Layout::RowMajor : Layout::Shared);
  demand(getAcc(), ordinaryLayout(getAcc(), target));
  demand(getResult(), ordinaryLayout(getResult(), target));
}
