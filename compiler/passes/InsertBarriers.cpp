#include "compiler/passes/Passes.h"

#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace nsa::tile {

#define GEN_PASS_DEF_INSERTBARRIERS
#include "compiler/passes/Passes.h.inc"

namespace {

// The pipelined loop of a tile.fetch.
scf::ForOp loopOf(FetchOp fetch) {
  for (Operation *user : fetch->getUsers())
    if (isa<FetchAheadOp>(user))
      return cast<scf::ForOp>(user->getParentOp());
  return nullptr;
}

bool isPipelined(scf::ForOp loop) { return !loop.getBody()->getOps<FetchAheadOp>().empty(); }

bool containsCopies(Block &block) {
  return block.walk([](CopyOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

// Places the waits and the barriers of one block, and of the blocks in it. No copy is under way where a block begins,
// and none where it ends.
class BlockSynchronizer {
public:
  explicit BlockSynchronizer(Block &block) : block(block), builder(block.getParentOp()->getContext()) {}

  void run() {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (auto fetch = dyn_cast<FetchOp>(op)) {
        visit(fetch);
        continue;
      }
      if (auto ahead = dyn_cast<FetchAheadOp>(op)) {
        visit(ahead);
        continue;
      }
      // One wait serves all copies that follow each other.
      if (!toleratesCopies(op))
        finishCopies(&op);
      if (auto copy = dyn_cast<CopyOp>(op))
        for (Operation *user : copy.getBuffer().getUsers())
          if (auto read = dyn_cast<ReadOp>(user))
            pending.push_back(read);
      if (isa<scf::ForOp, scf::IfOp>(op))
        for (Region &region : op.getRegions())
          if (!region.empty())
            BlockSynchronizer(region.front()).run();
    }
    // The next iteration overwrites the tiles that this iteration copied. The ring of the loop itself is guarded by the
    // barrier at the start of an iteration.
    if (isa<scf::ForOp>(block.getParentOp()) && containsCopies(block)) {
      builder.setInsertionPoint(block.getTerminator());
      BarrierOp::create(builder, block.getParentOp()->getLoc());
    }
  }

private:
  bool readsPending(Operation &op) {
    return llvm::any_of(op.getOperands(),
                        [&](Value operand) { return llvm::is_contained(pending, operand.getDefiningOp()); });
  }

  // Whether started copies may still be under way where `op` is. A pipelined loop starts its own copies before it waits
  // for them.
  bool toleratesCopies(Operation &op) {
    if (readsPending(op) || op.hasTrait<OpTrait::IsTerminator>())
      return false;
    if (isa<CopyOp, ReadOp>(op))
      return true;
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return isPipelined(loop);
    return isMemoryEffectFree(&op) && !isa<scf::IfOp>(op);
  }

  // Waits for all started copies before `op`. Tiles are read after the wait.
  void finishCopies(Operation *op) {
    if (pending.empty())
      return;
    builder.setInsertionPoint(op);
    CommitCopiesOp::create(builder, op->getLoc());
    await(/*newest=*/0);
    takePending();
  }

  void await(int64_t newest) {
    Location loc = block.getParentOp()->getLoc();
    WaitCopiesOp::create(builder, loc, newest);
    BarrierOp::create(builder, loc);
  }

  void takePending() {
    for (ReadOp read : std::exchange(pending, {}))
      read->moveBefore(builder.getInsertionBlock(), builder.getInsertionPoint());
  }

  void visit(FetchOp fetch) {
    scf::ForOp loop = loopOf(fetch);
    if (loop && readsPending(*loop))
      finishCopies(fetch);
    if (pending.empty())
      return;
    // Copies that were started before the loop are the oldest group.
    builder.setInsertionPoint(fetch);
    CommitCopiesOp::create(builder, fetch.getLoc());
    // Tiles in shared memory that only the loop reads arrive before the first tile of the ring, for which the loop
    // waits anyway. If this loop is inside another loop, the wait is placed here: the outer loop starts these copies
    // again, and this loop may not have run.
    bool isAwaitedByLoop =
        loop && !loop->getParentOfType<scf::ForOp>() && llvm::all_of(pending, [&](ReadOp read) {
          return layoutOf(read) == Layout::Shared &&
                 llvm::all_of(read->getUsers(), [&](Operation *user) { return loop->isProperAncestor(user); });
        });
    if (isAwaitedByLoop) {
      builder.setInsertionPoint(*loop.getBody()->getOps<FetchAheadOp>().begin());
    } else {
      builder.setInsertionPointAfter(fetch);
      await(static_cast<int64_t>(fetch.getStages()) - 1);
    }
    takePending();
  }

  // With S stages, the copies of an iteration are started S - 1 iterations before it. At the start of an iteration all
  // groups of copies but the newest S - 2 are complete. The barrier there makes them visible to all threads. It also
  // guarantees that all threads have left the previous iteration, whose stage the next copies overwrite.
  void visit(FetchAheadOp ahead) {
    builder.setInsertionPointToStart(&block);
    await(static_cast<int64_t>(ahead.getFetchOp().getStages()) - 2);
    builder.setInsertionPointAfter(ahead);
    CommitCopiesOp::create(builder, ahead.getLoc());
  }

  Block &block;
  OpBuilder builder;
  // The reads of copies that were started and for which no wait has been placed yet.
  SmallVector<ReadOp> pending;
};

struct InsertBarriers : impl::InsertBarriersBase<InsertBarriers> {
  void runOnOperation() override { BlockSynchronizer(getOperation().getBody().front()).run(); }
};

} // namespace

} // namespace nsa::tile
