#include "compiler/passes/FirstFit.h"
#include "compiler/passes/Passes.h"

#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <numeric>

using namespace mlir;

namespace nsa::tile {

#define GEN_PASS_DEF_PLANBUFFERS
#include "compiler/passes/Passes.h.inc"

namespace {

// The swizzle repeats every 8 rows of 16 bytes. A tile that started elsewhere would be read at other addresses than it
// was written.
constexpr int64_t kAlignment = 128;
// The bytes of one cp.async copy, and of one row of ldmatrix.
constexpr int64_t kRowGranule = 16;
// A slot of a list is a row of 8-byte keys, followed by room for four keys (templates/device/top_lists.cuh).
constexpr int64_t kListKey = 8, kListGap = 4;

struct PlanBuffers : impl::PlanBuffersBase<PlanBuffers> {
  using PlanBuffersBase::PlanBuffersBase;

  void runOnOperation() override {
    SmallVector<Operation *> places;
    SmallVector<int64_t> sizes;
    getOperation().walk([&](TopCreateOp lists) {
      places.push_back(lists);
      sizes.push_back(lists.getType().getSlots() * (lists.getType().getRows() + kListGap) * kListKey);
    });
    WalkResult walk = getOperation().walk([&](BufferOp buffer) {
      RankedTensorType tile = buffer.getType().getTile();
      int64_t rowBytes = tile.getDimSize(1) * tile.getElementTypeBitWidth() / 8;
      if (rowBytes % kRowGranule != 0) {
        buffer.emitOpError() << "has rows of " << rowBytes << " bytes; in shared memory they are multiples of "
                             << kRowGranule;
        return WalkResult::interrupt();
      }
      places.push_back(buffer);
      sizes.push_back(rowBytes * tile.getDimSize(0) * buffer.getType().getStages());
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return signalPassFailure();

    SmallVector<int> order(places.size());
    std::iota(order.begin(), order.end(), 0);
    FirstFit fit = placeFirstFit(sizes, order, kAlignment, [](int, int) { return true; });
    if (fit.bytes > limit) {
      InFlightDiagnostic error = getOperation().emitError()
                                 << "needs " << fit.bytes << " bytes of shared memory, but a block may use "
                                 << limit.getValue() << ": smaller tiles or fewer stages fit";
      for (Operation *place : places)
        error.attachNote(place->getLoc()) << "one of its tiles, " << place->getResult(0).getType();
      return signalPassFailure();
    }
    Builder builder(&getContext());
    for (auto [place, offset] : llvm::zip_equal(places, fit.offsets))
      place->setAttr(kSharedOffsetAttr, builder.getI64IntegerAttr(offset));
    getOperation()->setAttr(kSharedBytesAttr, builder.getI64IntegerAttr(fit.bytes));
  }
};

} // namespace

} // namespace nsa::tile
