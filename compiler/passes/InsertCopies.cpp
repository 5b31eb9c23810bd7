#include "compiler/passes/Passes.h"

#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace nsa::tile {

#define GEN_PASS_DEF_INSERTCOPIES
#include "compiler/passes/Passes.h.inc"

namespace {

// Lowers operations of a function to buffers and what fills and reads them.
class CopyInserter {
public:
  explicit CopyInserter(func::FuncOp function) : function(function) {}

  LogicalResult lower(Operation *op) {
    if (auto load = dyn_cast<LoadOp>(op))
      return lowerLoad(load);
    if (auto convert = dyn_cast<ConvertLayoutOp>(op))
      return lowerConversion(convert);
    return lowerReduction(cast<ReduceOp>(op));
  }

private:
  BufferOp makeBuffer(Operation *op, RankedTensorType tile) {
    auto type = BufferType::getChecked([&] { return op->emitOpError("cannot be in shared memory: "); },
                                       op->getContext(), tile, int64_t{1});
    if (!type)
      return nullptr;
    // Buffers stand at the start of the function, in the order of the operations.
    OpBuilder builder(op->getContext());
    if (lastBuffer)
      builder.setInsertionPointAfter(lastBuffer);
    else
      builder.setInsertionPointToStart(&function.getBody().front());
    lastBuffer = BufferOp::create(builder, op->getLoc(), type);
    return lastBuffer;
  }

  // Replaces `op` by `result`, which has the layout of `op`.
  static void replace(Operation *op, Operation *result) {
    result->setAttr(kLayoutAttr, op->getAttr(kLayoutAttr));
    op->replaceAllUsesWith(result);
    op->erase();
  }

  LogicalResult lowerLoad(LoadOp load) {
    BufferOp buffer = makeBuffer(load, cast<RankedTensorType>(load.getType()));
    if (!buffer)
      return failure();
    OpBuilder builder(load);
    auto copy = CopyOp::create(builder, load.getLoc(), load.getView(), buffer, /*stage=*/Value(), load.getColumnsAttr(),
                               load.getChunk(), load.getRowColumns());
    copy.getRows().takeBody(load.getRows());
    replace(load, ReadOp::create(builder, load.getLoc(), load.getType(), buffer, /*stage=*/Value()));
    return success();
  }

  LogicalResult lowerConversion(ConvertLayoutOp convert) {
    BufferOp buffer = makeBuffer(convert, cast<RankedTensorType>(convert.getType()));
    if (!buffer)
      return failure();
    OpBuilder builder(convert);
    WriteOp::create(builder, convert.getLoc(), convert.getSource(), buffer);
    replace(convert, ReadOp::create(builder, convert.getLoc(), convert.getType(), buffer, /*stage=*/Value()));
    return success();
  }

  // One warp reduces its rows in registers.
  LogicalResult lowerReduction(ReduceOp reduce) {
    auto warps = function->getAttrOfType<IntegerAttr>(kWarpsAttr);
    if (!warps)
      return function.emitError() << "has no '" << kWarpsAttr << "', by which a GPU splits the rows of a tile";
    if (warps.getInt() == 1)
      return success();
    auto columns = cast<RankedTensorType>(reduce.getType());
    int64_t rows = static_cast<int64_t>(llvm::alignTo(warps.getInt(), kRowsOfBuffer));
    BufferOp buffer =
        makeBuffer(reduce, RankedTensorType::get({rows, columns.getDimSize(0)}, columns.getElementType()));
    OpBuilder builder(reduce);
    WritePartialsOp::create(builder, reduce.getLoc(), reduce.getKind(), reduce.getSource(), buffer);
    replace(reduce, ReadPartialsOp::create(builder, reduce.getLoc(), columns, reduce.getKind(), buffer));
    return success();
  }

  // The rows of a tile in shared memory are a multiple of this, because ldmatrix reads eight rows at a time.
  static constexpr uint64_t kRowsOfBuffer = 8;

  func::FuncOp function;
  BufferOp lastBuffer;
};

struct InsertCopies : impl::InsertCopiesBase<InsertCopies> {
  void runOnOperation() override {
    SmallVector<Operation *> throughShared;
    getOperation().walk([&](Operation *op) {
      auto reduce = dyn_cast<ReduceOp>(op);
      std::optional<Layout> layout = isa<LoadOp>(op) ? layoutOf(op->getResult(0)) : std::nullopt;
      if (layout == Layout::Shared || layout == Layout::OperandA || isa<ConvertLayoutOp>(op) ||
          (reduce && isColumnVector(reduce.getType())))
        throughShared.push_back(op);
    });
    CopyInserter inserter(getOperation());
    for (Operation *op : throughShared)
      if (failed(inserter.lower(op)))
        return signalPassFailure();
  }
};

} // namespace

} // namespace nsa::tile
