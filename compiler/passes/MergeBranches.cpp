#include "compiler/passes/Passes.h"

#include "compiler/dialect/Tile.h"
#include "compiler/dialect/TileProgram.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace nsa::tile {

#define GEN_PASS_DEF_MERGEBRANCHES
#include "compiler/passes/Passes.h.inc"

namespace {

// The next branch of the block that has the same condition, if what lies between may be computed in its arms.
scf::IfOp findPartner(scf::IfOp first) {
  for (Operation *op = first->getNextNode(); op; op = op->getNextNode()) {
    auto branch = dyn_cast<scf::IfOp>(op);
    if (branch && branch.getCondition() == first.getCondition())
      return branch;
    if (!isMemoryEffectFree(op))
      return nullptr;
  }
  return nullptr;
}

// Appends to `arm`, whose results so far are in `mapping`, what lies between the branches and the second one's arm.
void appendTo(Block &arm, ArrayRef<Operation *> between, scf::IfOp second, Block *secondArm, ArrayRef<Value> needed,
              IRMapping mapping) {
  Operation *yield = arm.getTerminator();
  OpBuilder builder(yield);
  for (Operation *op : between)
    builder.clone(*op, mapping);
  if (secondArm) {
    for (Operation &op : secondArm->without_terminator())
      builder.clone(op, mapping);
    for (auto [result, yielded] : llvm::zip(second.getResults(), secondArm->getTerminator()->getOperands()))
      mapping.map(result, mapping.lookupOrDefault(yielded));
  }
  SmallVector<Value> yielded;
  for (Value value : needed)
    yielded.push_back(mapping.lookupOrDefault(value));
  yield->setOperands(yielded);
}

// `first`, then what lies between, then `second`, as one branch in the place of `second`.
void merge(scf::IfOp first, scf::IfOp second) {
  SmallVector<Operation *> between;
  for (Operation *op = first->getNextNode(); op != second; op = op->getNextNode())
    between.push_back(op);
  SmallVector<Operation *> parts = {first};
  parts.append(between);
  parts.push_back(second);

  // What is used after the branches, or beside them, is a result of the new one.
  SmallVector<Value> needed;
  for (Operation *part : parts)
    for (Value result : part->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) {
            Operation *place = first->getBlock()->findAncestorOpInBlock(*user);
            return !llvm::is_contained(parts, place);
          }))
        needed.push_back(result);

  OpBuilder builder(second);
  Location loc = builder.getUnknownLoc();
  auto merged = scf::IfOp::create(builder, loc, ValueRange(needed).getTypes(), first.getCondition(),
                                  /*addThenBlock=*/false, /*addElseBlock=*/false);
  Region &thenRegion = merged.getThenRegion(), &elseRegion = merged.getElseRegion();
  IRMapping thenValues, elseValues;
  for (auto [result, yielded] : llvm::zip(first.getResults(), first.thenYield().getOperands()))
    thenValues.map(result, yielded);
  if (first.elseBlock())
    for (auto [result, yielded] : llvm::zip(first.getResults(), first.elseYield().getOperands()))
      elseValues.map(result, yielded);
  thenRegion.takeBody(first.getThenRegion());
  elseRegion.takeBody(first.getElseRegion());
  if (elseRegion.empty()) {
    builder.createBlock(&elseRegion);
    scf::YieldOp::create(builder, second.getLoc());
  }
  appendTo(thenRegion.front(), between, second, second.thenBlock(), needed, std::move(thenValues));
  appendTo(elseRegion.front(), between, second, second.elseBlock(), needed, std::move(elseValues));

  SmallVector<std::string> names;
  for (auto [old, result] : llvm::zip(needed, merged.getResults())) {
    names.push_back(sourceName(old));
    old.replaceUsesWithIf(result, [&](OpOperand &use) {
      return !llvm::is_contained(parts, first->getBlock()->findAncestorOpInBlock(*use.getOwner()));
    });
  }
  setSourceNames(merged, names);
  for (Operation *part : llvm::reverse(parts))
    part->erase();
}

struct MergeBranches : impl::MergeBranchesBase<MergeBranches> {
  void runOnOperation() override {
    // Inner blocks first, each from its start; a merged branch may find a further partner.
    getOperation().walk([](Block *block) {
      for (Operation *op = &block->front(); op;) {
        auto branch = dyn_cast<scf::IfOp>(op);
        scf::IfOp partner = branch ? findPartner(branch) : nullptr;
        if (!partner) {
          op = op->getNextNode();
          continue;
        }
        Operation *after = partner->getNextNode();
        merge(branch, partner);
        op = after->getPrevNode();
      }
    });
  }
};

} // namespace

} // namespace nsa::tile
