// Tile programs as text: values bear their names, and verifiers name the line.
#include "compiler/dialect/TileProgram.h"

#include "compiler/dialect/Tile.h"
#include "tests/unit/dialect/tile_text.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

using namespace nsa::tile;

namespace {

class TileProgramTest : public testing::Test {
protected:
  TileProgramTest() : context(mlir::MLIRContext::Threading::DISABLED) {
    mlir::DialectRegistry registry;
    registerTileProgramDialects(registry);
    context.appendDialectRegistry(registry);
  }

  mlir::OwningOpRef<mlir::ModuleOp> parse(llvm::StringRef text) {
    return nsa::test::parseTileText(text, "tile/test.mlir", context, diagnostics);
  }

  template <typename Op> static Op find(mlir::ModuleOp module) {
    Op found;
    module.walk([&](Op op) { found = op; });
    return found;
  }

  mlir::MLIRContext context;
  std::string diagnostics;
};

TEST_F(TileProgramTest, KeepsTheNamesOfValues) {
  auto module = parse(R"(
    func.func @f(%scores: !tile.view<f32, 1>, %first: i32, %past: i32, %is_edge: i1) {
      %begin, %count:2 = scf.if %is_edge -> (i32, i32, i32) {
        scf.yield %first, %past, %past : i32, i32, i32
      } else {
        scf.yield %past, %first, %first : i32, i32, i32
      }
      %last = scf.for %key = %begin to %count#1 step %count#0 iter_args(%sum = %first) -> (i32) : i32 {
        %next = arith.addi %sum, %key : i32
        %0 = tile.load %scores rows(%r) {
          tile.at [%r] if %is_edge
        } : !tile.view<f32, 1> -> tensor<16xf32>
        scf.yield %next : i32
      }
      return
    })");
  ASSERT_TRUE(module) << diagnostics;
  auto function = find<mlir::func::FuncOp>(*module);
  EXPECT_EQ(sourceName(function.getArgument(0)), "scores");
  EXPECT_EQ(sourceName(function.getArgument(3)), "is_edge");

  auto branch = find<mlir::scf::IfOp>(*module);
  EXPECT_EQ(sourceName(branch.getResult(0)), "begin");
  EXPECT_EQ(sourceName(branch.getResult(1)), "count_0");
  EXPECT_EQ(sourceName(branch.getResult(2)), "count_1");

  auto loop = find<mlir::scf::ForOp>(*module);
  EXPECT_EQ(sourceName(loop.getResult(0)), "last");
  EXPECT_EQ(sourceName(loop.getInductionVar()), "key");
  EXPECT_EQ(sourceName(loop.getRegionIterArg(0)), "sum");

  auto load = find<LoadOp>(*module);
  EXPECT_EQ(sourceName(load), "") << "a number is no name";
  EXPECT_EQ(sourceName(load.getRow()), "r");
}

TEST_F(TileProgramTest, TellsVerifierErrorsByTheirLine) {
  EXPECT_FALSE(parse("func.func @f() {\n"
                     "  %y = tile.iota 1 : tensor<16xi32>\n"
                     "  return\n"
                     "}\n"));
  EXPECT_EQ(diagnostics, "tile/test.mlir:2:8: error: 'tile.iota' op has dimension 1 of a tile of rank 1\n");
}

} // namespace
