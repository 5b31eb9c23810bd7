#include "compiler/dialect/TileProgram.h"

#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace nsa::tile {

void registerTileProgramDialects(DialectRegistry &registry) {
  registry.insert<TileDialect, arith::ArithDialect, func::FuncDialect, math::MathDialect, scf::SCFDialect>();
}

std::string sourceName(Value value) {
  Location loc = value.getLoc();
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName().str();
  auto result = dyn_cast<OpResult>(value);
  auto fused = dyn_cast<FusedLoc>(loc);
  auto names = fused ? dyn_cast_or_null<ArrayAttr>(fused.getMetadata()) : ArrayAttr();
  // A rewrite that drops results keeps the location. The list then no longer tells which name belongs to which result.
  if (!result || !names || names.size() != result.getOwner()->getNumResults())
    return {};
  return cast<StringAttr>(names[result.getResultNumber()]).str();
}

} // namespace nsa::tile
