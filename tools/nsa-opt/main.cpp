// mlir-opt for tile programs: every pass of ours by name, no dialect that we do not use.
#include "compiler/cpu/Passes.h"
#include "compiler/dialect/Tile.h"
#include "compiler/passes/Passes.h"
#include "tools/nsa-opt/language.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  if (argc > 1 && llvm::StringRef(argv[1]) == "--tile-language")
    return nsa::runTileLanguage(argc - 2, argv + 2);
  mlir::DialectRegistry registry;
  registry
      .insert<nsa::tile::TileDialect, mlir::arith::ArithDialect, mlir::cf::ControlFlowDialect, mlir::func::FuncDialect,
              mlir::LLVM::LLVMDialect, mlir::math::MathDialect, mlir::scf::SCFDialect, mlir::vector::VectorDialect>();
  mlir::registerTransformsPasses();
  nsa::tile::registerTilePasses();
  nsa::cpu::registerCpuPasses();
  nsa::cpu::registerCpuPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "developer's tool for tile programs\n", registry));
}
