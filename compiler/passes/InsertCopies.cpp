#include "compiler/passes/Passes.h"

#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace nsa::tile {

#define GEN_PASS_DEF_INSERTCOPIES
#include "compiler/passes/Passes.h.inc"

namespace {

struct InsertCopies : impl::InsertCopiesBase<InsertCopies> {
  void runOnOperation() override {
    SmallVector<LoadOp> loads;
    getOperation().walk([&](LoadOp load) {
      std::optional<Layout> layout = layoutOf(load);
      if (layout == Layout::Shared || layout == Layout::OperandA)
        loads.push_back(load);
    });
    // The buffers are made in the order of the loads.
    OpBuilder buffers = OpBuilder::atBlockBegin(&getOperation().getBody().front());
    for (LoadOp load : loads)
      if (failed(lower(load, buffers)))
        return signalPassFailure();
  }

private:
  static LogicalResult lower(LoadOp load, OpBuilder &buffers) {
    Location loc = load.getLoc();
    auto type = BufferType::getChecked([&] { return load.emitOpError("cannot be in shared memory: "); },
                                       load.getContext(), cast<RankedTensorType>(load.getType()), int64_t{1});
    if (!type)
      return failure();
    auto buffer = BufferOp::create(buffers, loc, type);
    OpBuilder builder(load);
    auto copy = CopyOp::create(builder, loc, load.getView(), buffer, /*stage=*/Value(), load.getColumnsAttr(),
                               load.getChunk(), load.getRowColumns());
    copy.getRows().takeBody(load.getRows());
    auto read = ReadOp::create(builder, loc, load.getType(), buffer, /*stage=*/Value());
    read->setAttr(kLayoutAttr, load->getAttr(kLayoutAttr));
    load.replaceAllUsesWith(read.getResult());
    load.erase();
    return success();
  }
};

} // namespace

} // namespace nsa::tile
