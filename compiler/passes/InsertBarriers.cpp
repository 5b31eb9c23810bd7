#include "compiler/passes/Passes.h"

#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SmallPtrSet.h"

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

template <typename... Ops> bool contains(Block &block) {
  return block.walk([](Operation *op) { return isa<Ops...>(op) ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}

bool isWrite(Operation *op) { return isa<WriteOp, WritePartialsOp>(op); }

Value bufferOf(Operation *op) {
  if (auto copy = dyn_cast<CopyOp>(op))
    return copy.getBuffer();
  if (auto write = dyn_cast<WriteOp>(op))
    return write.getBuffer();
  return cast<WritePartialsOp>(op).getBuffer();
}

// Whether `value` is a tile that threads wrote to shared memory, as opposed to one that was copied there.
bool isWrittenTile(Value value) {
  auto read = value.getDefiningOp<ReadOp>();
  return read && llvm::any_of(read.getBuffer().getUsers(), isWrite);
}

// The tensors that a view may be: a choice between two tensors may be either of them.
void addTensors(Value view, SmallPtrSetImpl<Value> &tensors) {
  if (auto choice = view.getDefiningOp<arith::SelectOp>()) {
    addTensors(choice.getTrueValue(), tensors);
    addTensors(choice.getFalseValue(), tensors);
  } else {
    tensors.insert(view);
  }
}

// Tensors that a program loads from and stores to.
struct Accesses {
  SmallPtrSet<Value, 2> loaded, stored;

  // Adds the accesses of `op`, and of what is in it.
  void add(Operation *op) {
    op->walk([&](Operation *nested) {
      if (auto load = dyn_cast<LoadOp>(nested))
        addTensors(load.getView(), loaded);
      else if (auto load = dyn_cast<LoadScalarOp>(nested))
        addTensors(load.getView(), loaded);
      else if (auto copy = dyn_cast<CopyOp>(nested))
        addTensors(copy.getView(), loaded);
      else if (auto store = dyn_cast<StoreOp>(nested))
        addTensors(store.getView(), stored);
    });
  }
  void add(const Accesses &other) {
    loaded.insert(other.loaded.begin(), other.loaded.end());
    stored.insert(other.stored.begin(), other.stored.end());
  }
  void keep(const SmallPtrSetImpl<Value> &tensors) {
    for (auto *set : {&loaded, &stored})
      set->remove_if([&](Value tensor) { return !tensors.contains(tensor); });
  }
  // Whether these accesses must not run beside earlier ones of other threads.
  bool mustFollow(const Accesses &earlier) const {
    const auto meet = [](const SmallPtrSetImpl<Value> &a, const SmallPtrSetImpl<Value> &b) {
      return llvm::any_of(a, [&](Value tensor) { return b.contains(tensor); });
    };
    return meet(loaded, earlier.stored) || meet(stored, earlier.loaded);
  }
};

// Places the waits and the barriers of one block, and of the blocks in it. No copy is under way where a block begins,
// and none where it ends.
class BlockSynchronizer {
public:
  // `isBeingRead` tells whether other threads may still be reading written tiles where the block begins. `accesses` are
  // what threads did to the tensors `inout` since the last barrier; the block's own are added.
  BlockSynchronizer(Block &block, bool isBeingRead, const SmallPtrSetImpl<Value> &inout, Accesses &accesses)
      : block(block), builder(block.getParentOp()->getContext()), isBeingRead(isBeingRead), inout(inout),
        accesses(accesses) {}

  // Returns isBeingRead for the end of the block.
  bool run() {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (!isa<scf::ForOp, scf::IfOp>(op))
        access(op);
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
        finish(&op);
      if (isa<CopyOp>(op) || isWrite(&op))
        begin(&op);
      if (isa<scf::ForOp, scf::IfOp>(op))
        visitRegions(op);
      if (auto loop = dyn_cast<scf::ForOp>(op))
        isRingBeingRead |= isPipelined(loop);
      isBeingRead |= llvm::any_of(op.getOperands(), isWrittenTile);
    }
    // The next iteration overwrites the tiles that this iteration copied. The ring of the loop itself is guarded by the
    // barrier at the start of an iteration.
    if (isa<scf::ForOp>(block.getParentOp()) && contains<CopyOp>(block)) {
      builder.setInsertionPoint(block.getTerminator());
      makeBarrier();
    }
    return isBeingRead;
  }

private:
  Accesses accessesOf(Operation &op) const {
    Accesses own;
    own.add(&op);
    own.keep(inout);
    return own;
  }

  // A program may load what another of its threads stored, and store to what another thread loaded.
  void access(Operation &op) {
    const Accesses own = accessesOf(op);
    if (own.mustFollow(accesses)) {
      builder.setInsertionPoint(&op);
      makeBarrier();
    }
    accesses.add(own);
  }

  bool readsPending(Operation &op) {
    return llvm::any_of(op.getOperands(),
                        [&](Value operand) { return llvm::is_contained(pending, operand.getDefiningOp()); });
  }

  // Whether started copies may still be under way where `op` is. A pipelined loop starts its own copies before it waits
  // for them.
  bool toleratesCopies(Operation &op) {
    if (readsPending(op) || op.hasTrait<OpTrait::IsTerminator>())
      return false;
    if (isa<CopyOp, ReadOp, ReadPartialsOp>(op) || isWrite(&op))
      return true;
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return isPipelined(loop);
    return isMemoryEffectFree(&op) && !isa<scf::IfOp>(op);
  }

  // A copy or a write, whose tile is read after the next wait. A write must not overwrite what other threads read.
  void begin(Operation *op) {
    // PlanBuffers may place what is copied behind a pipelined loop into the ring of the loop.
    if (isWrite(op) ? isBeingRead : isRingBeingRead) {
      builder.setInsertionPoint(op);
      makeBarrier();
    }
    (isWrite(op) ? isWritePending : isCopyPending) = true;
    for (Operation *user : bufferOf(op).getUsers())
      if (isa<ReadOp, ReadPartialsOp>(user) && user->getBlock() == &block)
        pending.push_back(user);
  }

  void visitRegions(Operation &op) {
    bool isReadAfter = isBeingRead;
    Accesses before = accesses, after;
    // A loop may have no iteration, and an iteration follows another one. Where iterations need not wait for each
    // other, one barrier in front of the loop is enough.
    if (isa<scf::ForOp>(op)) {
      const Accesses own = accessesOf(op);
      if (own.mustFollow(accesses) && !own.mustFollow(own)) {
        builder.setInsertionPoint(&op);
        makeBarrier();
        before = accesses;
      }
      after = before;
      before.add(own);
    }
    for (Region &region : op.getRegions()) {
      accesses = before;
      if (region.empty()) {
        after.add(accesses);
        continue;
      }
      // The threads that are ahead write while others may read the tile of the iteration before.
      bool isReadBefore = isBeingRead || (isa<scf::ForOp>(op) && contains<WriteOp, WritePartialsOp>(region.front()));
      isReadAfter |= BlockSynchronizer(region.front(), isReadBefore, inout, accesses).run();
      after.add(accesses);
    }
    isBeingRead = isReadAfter;
    accesses = after;
  }

  // Waits for all started copies and writes before `op`. Tiles are read after the wait.
  void finish(Operation *op) {
    builder.setInsertionPoint(op);
    if (isCopyPending) {
      CommitCopiesOp::create(builder, op->getLoc());
      await(/*newest=*/0);
    } else if (isWritePending) {
      makeBarrier();
    }
    takePending();
  }

  void makeBarrier() {
    BarrierOp::create(builder, block.getParentOp()->getLoc());
    isBeingRead = isRingBeingRead = false;
    accesses = {};
  }

  void await(int64_t newest) {
    WaitCopiesOp::create(builder, block.getParentOp()->getLoc(), newest);
    makeBarrier();
  }

  void takePending() {
    for (Operation *read : std::exchange(pending, {})) {
      read->moveBefore(builder.getInsertionBlock(), builder.getInsertionPoint());
      isBeingRead |= isa<ReadPartialsOp>(read);
    }
    isCopyPending = isWritePending = false;
  }

  void visit(FetchOp fetch) {
    scf::ForOp loop = loopOf(fetch);
    // PlanBuffers may place the ring of a loop into the ring of a loop in front of it.
    if (isRingBeingRead) {
      builder.setInsertionPoint(fetch);
      makeBarrier();
    }
    if (isWritePending || (loop && readsPending(*loop)))
      finish(fetch);
    if (!isCopyPending)
      return;
    // Copies that were started before the loop are the oldest group.
    builder.setInsertionPoint(fetch);
    CommitCopiesOp::create(builder, fetch.getLoc());
    // Tiles in shared memory that only the loop reads arrive before the first tile of the ring, for which the loop
    // waits anyway. If this loop is inside another loop, the wait is placed here: the outer loop starts these copies
    // again, and this loop may not have run.
    bool isAwaitedByLoop =
        loop && !loop->getParentOfType<scf::ForOp>() && llvm::all_of(pending, [&](Operation *read) {
          return layoutOf(read->getResult(0)) == Layout::Shared &&
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
  bool isBeingRead;
  const SmallPtrSetImpl<Value> &inout;
  Accesses &accesses;
  // Whether other threads may still be in a pipelined loop of this block.
  bool isRingBeingRead = false;
  // Whether copies were started, or tiles written, for which no wait has been placed yet, and what reads them.
  bool isCopyPending = false, isWritePending = false;
  SmallVector<Operation *> pending;
};

struct InsertBarriers : impl::InsertBarriersBase<InsertBarriers> {
  void runOnOperation() override {
    Accesses all, accesses;
    all.add(getOperation());
    SmallPtrSet<Value, 2> inout;
    for (Value tensor : all.loaded)
      if (all.stored.contains(tensor))
        inout.insert(tensor);
    BlockSynchronizer(getOperation().getBody().front(), /*isBeingRead=*/false, inout, accesses).run();
  }
};

} // namespace

} // namespace nsa::tile
