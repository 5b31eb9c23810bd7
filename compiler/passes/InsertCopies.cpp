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

  // One warp reduces in registers.
  LogicalResult lowerReduction(ReduceOp reduce) {
    auto warps = function->getAttrOfType<IntegerAttr>(kWarpsAttr);
    if (!warps)
      return function.emitError() << "has no '" << kWarpsAttr << "', by which a GPU splits the rows of a tile";
    if (warps.getInt() == 1)
      return success();
    // Each warp has a row of partial results for the columns, or a column of them for the rows.
    auto vector = cast<RankedTensorType>(reduce.getType());
    auto rounded = [](int64_t size, uint64_t multiple) {
      return static_cast<int64_t>(llvm::alignTo(static_cast<uint64_t>(size), multiple));
    };
    SmallVector<int64_t> shape = {rounded(warps.getInt(), kRowsOfBuffer), vector.getDimSize(0)};
    if (!isColumnVector(vector))
      shape = {rounded(vector.getDimSize(0), kRowsOfBuffer), rounded(warps.getInt(), kFloatsOfChunk)};
    BufferOp buffer = makeBuffer(reduce, RankedTensorType::get(shape, vector.getElementType()));
    OpBuilder builder(reduce);
    WritePartialsOp::create(builder, reduce.getLoc(), reduce.getKind(), reduce.getSource(), buffer);
    replace(reduce, ReadPartialsOp::create(builder, reduce.getLoc(), vector, reduce.getKind(), buffer));
    return success();
  }

  // The rows of a tile in shared memory are a multiple of this, because ldmatrix reads eight rows at a time.
  static constexpr uint64_t kRowsOfBuffer = 8;
  // A row of a tile in shared memory is a number of 16-byte chunks.
  static constexpr uint64_t kFloatsOfChunk = 4;

  func::FuncOp function;
  BufferOp lastBuffer;
};

struct InsertCopies : impl::InsertCopiesBase<InsertCopies> {
  void runOnOperation() override {
    SmallVector<Operation *> throughShared;
    getOperation().walk([&](Operation *op) {
      std::optional<Layout> layout = isa<LoadOp, ReduceOp>(op) ? layoutOf(op->getResult(0)) : std::nullopt;
      // Several warps hold a column of an accumulator, and a row of a striped tile.
      bool isShared = isa<ReduceOp>(op) ? layout == Layout::Column || layout == Layout::Uniform
                                        : layout == Layout::Shared || layout == Layout::OperandA;
      if (isShared || isa<ConvertLayoutOp>(op))
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
