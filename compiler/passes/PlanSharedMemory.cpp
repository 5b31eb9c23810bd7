#include "compiler/passes/Passes.h"

#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace nsa::tile {

#define GEN_PASS_DEF_PLANSHAREDMEMORY
#include "compiler/passes/Passes.h.inc"

namespace {

// The swizzle repeats every 8 rows of 16 bytes. A tile that started elsewhere would be read at other addresses than it
// was written.
constexpr int64_t kAlignment = 128;
// The bytes of one cp.async copy, and of one row of ldmatrix.
constexpr int64_t kRowGranule = 16;
// A slot of a list is a row of 8-byte keys, followed by room for four keys (templates/device/top_lists.cuh).
constexpr int64_t kListKey = 8, kListGap = 4;

struct PlanSharedMemory : impl::PlanSharedMemoryBase<PlanSharedMemory> {
  using PlanSharedMemoryBase::PlanSharedMemoryBase;

  void runOnOperation() override {
    Builder builder(&getContext());
    SmallVector<Operation *> places;
    int64_t total = 0;
    auto place = [&](Operation *op, int64_t bytes) {
      total = llvm::alignTo(total, kAlignment);
      op->setAttr(kSharedOffsetAttr, builder.getI64IntegerAttr(total));
      total += bytes;
      places.push_back(op);
    };
    WalkResult walk = getOperation().walk([&](Operation *op) {
      if (auto lists = dyn_cast<TopCreateOp>(op))
        place(op, lists.getType().getSlots() * (lists.getType().getRows() + kListGap) * kListKey);
      auto load = dyn_cast<LoadOp>(op);
      if (!load)
        return WalkResult::advance();
      std::optional<Layout> layout = layoutOf(load);
      if (layout != Layout::Shared && layout != Layout::OperandA)
        return WalkResult::advance();
      auto tile = cast<RankedTensorType>(load.getType());
      int64_t rowBytes = tile.getDimSize(1) * tile.getElementTypeBitWidth() / 8;
      if (rowBytes % kRowGranule != 0) {
        load.emitOpError() << "has rows of " << rowBytes << " bytes; in shared memory they are multiples of "
                           << kRowGranule;
        return WalkResult::interrupt();
      }
      auto ring = load->getAttrOfType<IntegerAttr>(kRingAttr);
      place(op, rowBytes * tile.getDimSize(0) * (ring ? ring.getInt() : 1));
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return signalPassFailure();
    if (total > limit) {
      InFlightDiagnostic error = getOperation().emitError()
                                 << "needs " << total << " bytes of shared memory, but a block may use "
                                 << limit.getValue() << ": smaller tiles or fewer stages fit";
      for (Operation *op : places)
        error.attachNote(op->getLoc()) << "one of its tiles, " << op->getResult(0).getType();
      return signalPassFailure();
    }
    getOperation()->setAttr(kSharedBytesAttr, builder.getI64IntegerAttr(total));
  }
};

} // namespace

} // namespace nsa::tile
