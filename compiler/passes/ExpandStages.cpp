#include "compiler/passes/Passes.h"

#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace nsa::tile {

#define GEN_PASS_DEF_EXPANDSTAGES
#include "compiler/passes/Passes.h.inc"

namespace {

// Whether two views may be the same tensor, given that arith.select may choose a view from others.
bool mayBe(Value view, Value other) {
  if (auto choice = view.getDefiningOp<arith::SelectOp>())
    return mayBe(choice.getTrueValue(), other) || mayBe(choice.getFalseValue(), other);
  return other.getDefiningOp<arith::SelectOp>() ? mayBe(other, view) : view == other;
}

bool storesTo(scf::ForOp loop, Value view) {
  return loop.getBody()
      ->walk(
          [&](StoreOp store) { return mayBe(store.getView(), view) ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}

// Whether the value of a scalar in a later iteration can be computed now.
bool isPredictable(Value value, scf::ForOp loop) {
  if (loop.isDefinedOutsideOfLoop(value) || value == loop.getInductionVar())
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != loop.getBody() || op->getNumRegions() != 0 || isTile(value))
    return false;
  auto element = dyn_cast<LoadScalarOp>(op);
  if (element ? storesTo(loop, element.getView()) : !isMemoryEffectFree(op))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) { return isPredictable(operand, loop); });
}

// Whether the rows of the copy in a later iteration can be computed now.
bool isPredictable(CopyOp copy, scf::ForOp loop) {
  bool predictable = true;
  copy.getRows().walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      predictable &= copy.getRows().isAncestor(operand.getParentRegion()) || isPredictable(operand, loop);
    // Rows may load scalars, too.
    auto element = dyn_cast<LoadScalarOp>(op);
    predictable &= !element || !storesTo(loop, element.getView());
  });
  return predictable && llvm::all_of(copy->getOperands(), [&](Value operand) { return isPredictable(operand, loop); });
}

// The copies of the loop's body that can run ahead of it. Copies in a branch of the body run only in some iterations,
// so they cannot.
SmallVector<CopyOp> copiesAhead(scf::ForOp loop) {
  SmallVector<CopyOp> copies;
  for (CopyOp copy : loop.getBody()->getOps<CopyOp>())
    if (isPredictable(copy, loop) && !storesTo(loop, copy.getView()))
      copies.push_back(copy);
  return copies;
}

// The scalars of the loop's body on which the copies depend, in program order.
SmallVector<Operation *> scalarsOf(ArrayRef<CopyOp> copies, scf::ForOp loop) {
  llvm::SetVector<Operation *> needed;
  SmallVector<Operation *> pending(copies.begin(), copies.end());
  while (!pending.empty())
    pending.pop_back_val()->walk([&](Operation *reader) {
      for (Value operand : reader->getOperands())
        if (Operation *scalar = operand.getDefiningOp();
            scalar && scalar->getBlock() == loop.getBody() && needed.insert(scalar))
          pending.push_back(scalar);
    });
  SmallVector<Operation *> scalars = needed.takeVector();
  llvm::sort(scalars, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return scalars;
}

// The place of the loop in the template, with a name for a value that the pass makes.
Location namedPlace(scf::ForOp loop, StringRef name) {
  auto named = dyn_cast<NameLoc>(loop.getLoc());
  return NameLoc::get(StringAttr::get(loop.getContext(), name), named ? named.getChildLoc() : loop.getLoc());
}

// Moves the copies, with the scalars on which they depend, to a tile.fetch before the loop.
FetchOp makeFetch(scf::ForOp loop, ArrayRef<CopyOp> copies, int64_t stages) {
  OpBuilder builder(loop);
  auto fetch = FetchOp::create(builder, namedPlace(loop, "fetch"), loop.getLowerBound(), loop.getUpperBound(),
                               loop.getStep(), stages);
  Block &body = fetch.getBody().emplaceBlock();
  Value index = loop.getInductionVar();
  IRMapping ahead;
  ahead.map(index, body.addArgument(index.getType(), index.getLoc()));
  Value stage = body.addArgument(builder.getI32Type(), namedPlace(loop, "stage"));

  builder.setInsertionPointToEnd(&body);
  SmallVector<Operation *> scalars = scalarsOf(copies, loop);
  llvm::DenseSet<Operation *> usedOnce;
  for (Operation *scalar : scalars) {
    builder.clone(*scalar, ahead);
    if (scalar->hasOneUse())
      usedOnce.insert(scalar);
  }
  for (CopyOp copy : copies) {
    Value buffer = copy.getBuffer();
    buffer.setType(BufferType::get(copy.getContext(), cast<BufferType>(buffer.getType()).getTile(), stages));
    cast<CopyOp>(builder.clone(*copy, ahead)).getStageMutable().assign(stage);
    copy->erase();
  }
  // What the loop does not read is not computed in it. A scalar of several uses that both compute has a name in both,
  // so that the emitted text shows that it is the same.
  for (Operation *scalar : llvm::reverse(scalars)) {
    if (scalar->use_empty()) {
      scalar->erase();
    } else if (!scalar->hasTrait<OpTrait::ConstantLike>() && !usedOnce.contains(scalar)) {
      for (Operation *place : {scalar, ahead.lookup(scalar->getResult(0)).getDefiningOp()})
        place->setAttr(kNamedAttr, builder.getUnitAttr());
    }
  }
  return fetch;
}

void expand(scf::ForOp loop, ArrayRef<CopyOp> copies, int64_t stages) {
  SmallVector<ReadOp> reads;
  for (CopyOp copy : copies)
    for (Operation *user : copy.getBuffer().getUsers())
      if (auto read = dyn_cast<ReadOp>(user))
        reads.push_back(read);
  FetchOp fetch = makeFetch(loop, copies, stages);
  OpBuilder builder = OpBuilder::atBlockBegin(loop.getBody());
  auto ahead = FetchAheadOp::create(builder, namedPlace(loop, "stage"), fetch, loop.getInductionVar());
  Operation *last = ahead;
  for (ReadOp read : reads) {
    read.getStageMutable().assign(ahead.getStage());
    read->moveAfter(last);
    last = read;
  }
}

struct ExpandStages : impl::ExpandStagesBase<ExpandStages> {
  void runOnOperation() override {
    getOperation().walk([](scf::ForOp loop) {
      auto stages = loop->getAttrOfType<IntegerAttr>(kStagesAttr);
      if (!stages || stages.getInt() == 1)
        return;
      if (SmallVector<CopyOp> copies = copiesAhead(loop); !copies.empty())
        expand(loop, copies, stages.getInt());
    });
  }
};

} // namespace

} // namespace nsa::tile
