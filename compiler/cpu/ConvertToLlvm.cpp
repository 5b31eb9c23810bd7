#include "compiler/cpu/Passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"

namespace nsa::cpu {

using namespace mlir;

#define GEN_PASS_DEF_CONVERTTOLLVM
#include "compiler/cpu/Passes.h.inc"

namespace {

// Lowers a loop that is known to run at least once to a loop with its test at the end. The pattern of MLIR tests first,
// and the loop would have to be rotated later.
struct LowerCountedLoop : OpRewritePattern<scf::ForOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(scf::ForOp loop, PatternRewriter &rewriter) const override {
    IntegerAttr lower, upper;
    if (loop.getUnsignedCmp() || !matchPattern(loop.getLowerBound(), m_Constant(&lower)) ||
        !matchPattern(loop.getUpperBound(), m_Constant(&upper)) || lower.getInt() >= upper.getInt())
      return failure();
    Location loc = loop.getLoc();
    Block *before = rewriter.getInsertionBlock();
    Block *after = rewriter.splitBlock(before, rewriter.getInsertionPoint());
    Block *first = &loop.getRegion().front(), *last = &loop.getRegion().back();
    rewriter.inlineRegionBefore(loop.getRegion(), after);

    rewriter.setInsertionPointToEnd(before);
    SmallVector<Value> initial = {loop.getLowerBound()};
    llvm::append_range(initial, loop.getInitArgs());
    cf::BranchOp::create(rewriter, loc, first, initial);

    Operation *yield = last->getTerminator();
    rewriter.setInsertionPoint(yield);
    SmallVector<Value> results(yield->getOperands());
    Value counter = arith::AddIOp::create(rewriter, loc, first->getArgument(0), loop.getStep());
    Value isMore = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::slt, counter, loop.getUpperBound());
    SmallVector<Value> next = {counter};
    llvm::append_range(next, results);
    rewriter.replaceOpWithNewOp<cf::CondBranchOp>(yield, isMore, first, next, after, ValueRange());
    rewriter.replaceOp(loop, results);
    return success();
  }
};

struct ConvertToLlvm : impl::ConvertToLlvmBase<ConvertToLlvm> {
  void runOnOperation() override {
    LLVMTypeConverter converter(&getContext());
    RewritePatternSet patterns(&getContext());
    patterns.add<LowerCountedLoop>(&getContext(), /*benefit=*/2);
    populateSCFToControlFlowConversionPatterns(patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    populateVectorToLLVMConversionPatterns(converter, patterns);
    populateFuncToLLVMConversionPatterns(converter, patterns);
    LLVMConversionTarget target(getContext());
    target.addLegalOp<ModuleOp>();
    if (failed(applyFullConversion(getOperation(), target, std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

} // namespace nsa::cpu
