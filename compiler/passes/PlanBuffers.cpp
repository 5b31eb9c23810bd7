#include "compiler/passes/FirstFit.h"
#include "compiler/passes/Passes.h"

#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"

#include <algorithm>
#include <limits>
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

// How a buffer is filled: by threads that compute a tile, by the copies of a pipelined loop, or by other copies.
enum class Filling { kAnyhow, kComputed, kRing, kCopied };

// The first and the last operation of the program, by number, that accesses a buffer. A buffer of kAnyhow is alive all
// the time.
struct Lifetime {
  Filling filling = Filling::kAnyhow;
  Block *block = nullptr;
  int64_t first = std::numeric_limits<int64_t>::max(), last = -1;

  bool sharesWith(const Lifetime &other) const {
    const bool areComputed = filling == Filling::kComputed && other.filling == Filling::kComputed;
    return areComputed ? last < other.first || other.last < first : isReusedBy(other) || other.isReusedBy(*this);
  }

private:
  // InsertBarriers places a barrier in front of what is copied behind a pipelined loop of the same block.
  bool isReusedBy(const Lifetime &later) const {
    const bool isCopied = later.filling == Filling::kCopied || later.filling == Filling::kRing;
    return filling == Filling::kRing && isCopied && block == later.block && last < later.first;
  }
};

class Lifetimes {
public:
  explicit Lifetimes(func::FuncOp function) {
    function.walk<WalkOrder::PreOrder>([&](Operation *op) { numbers[op] = static_cast<int64_t>(numbers.size()); });
  }

  Lifetime of(BufferOp buffer) const {
    SmallVector<Operation *> accesses;
    Lifetime lifetime;
    lifetime.filling = Filling::kComputed;
    for (Operation *user : buffer->getUsers()) {
      if (isa<CopyOp>(user))
        lifetime.filling = isa<FetchOp>(user->getParentOp()) ? Filling::kRing : Filling::kCopied;
      accesses.push_back(user);
      if (isa<ReadOp>(user))
        llvm::append_range(accesses, user->getUsers());
    }
    Block *block = lifetime.block = blockAround(accesses);
    // The barrier in front of a copy is in the block of the copy.
    const bool isCopiedElsewhere = llvm::any_of(buffer->getUsers(), [&](Operation *user) {
      return isa<CopyOp>(user) && !isa<FetchOp>(user->getParentOp()) && user->getBlock() != block;
    });
    if (!block || isCopiedElsewhere || (lifetime.filling != Filling::kComputed && isInLoop(block)))
      return {};
    for (Operation *access : accesses) {
      // A loop that accesses a tile from outside of the loop does so in each iteration.
      Operation *place = block->findAncestorOpInBlock(*access);
      lifetime.first = std::min(lifetime.first, numbers.lookup(place));
      place->walk([&](Operation *nested) { lifetime.last = std::max(lifetime.last, numbers.lookup(nested)); });
    }
    return lifetime;
  }

private:
  static bool isInLoop(Block *block) {
    return isa<scf::ForOp>(block->getParentOp()) || block->getParentOp()->getParentOfType<scf::ForOp>();
  }

  // The innermost block that has all of them, directly or nested.
  static Block *blockAround(ArrayRef<Operation *> operations) {
    Block *block = operations.empty() ? nullptr : operations.front()->getBlock();
    for (Operation *op : operations)
      while (!block->findAncestorOpInBlock(*op))
        block = block->getParentOp()->getBlock();
    return block;
  }

  llvm::DenseMap<Operation *, int64_t> numbers;
};

struct PlanBuffers : impl::PlanBuffersBase<PlanBuffers> {
  using PlanBuffersBase::PlanBuffersBase;

  void runOnOperation() override {
    SmallVector<Operation *> places;
    SmallVector<int64_t> sizes;
    SmallVector<Lifetime> lifetimes;
    const Lifetimes program(getOperation());
    getOperation().walk([&](TopCreateOp lists) {
      places.push_back(lists);
      sizes.push_back(lists.getType().getSlots() * (lists.getType().getRows() + kListGap) * kListKey);
      lifetimes.emplace_back();
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
      lifetimes.push_back(program.of(buffer));
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return signalPassFailure();

    SmallVector<int> order(places.size());
    std::iota(order.begin(), order.end(), 0);
    FirstFit fit =
        placeFirstFit(sizes, order, kAlignment, [&](int a, int b) { return !lifetimes[a].sharesWith(lifetimes[b]); });
    if (fit.bytes > limit) {
      InFlightDiagnostic error = getOperation().emitError()
                                 << "needs " << fit.bytes << " bytes of shared memory, but a block may use "
                                 << limit.getValue() << ": smaller tiles or fewer stages fit";
      for (auto [place, size] : llvm::zip_equal(places, sizes))
        error.attachNote(place->getLoc()) << "a tile of " << size << " bytes";
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
