// KernelEmitter: blocks, branches and loops of a kernel.
#include "compiler/cuda/KernelEmitter.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace nsa::tile;

namespace nsa::cuda {

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

static bool isShared(LoadOp load) {
  std::optional<Layout> layout = layoutOf(load);
  return layout == Layout::Shared || layout == Layout::OperandA;
}

static bool isRing(LoadOp load) { return load->hasAttr(kRingAttr); }

// The loads of a loop's body that are copied ahead of their iteration.
static SmallVector<LoadOp> ringOf(scf::ForOp loop) {
  SmallVector<LoadOp> ring;
  for (LoadOp load : loop.getBody()->getOps<LoadOp>())
    if (isRing(load))
      ring.push_back(load);
  return ring;
}

// Whether started copies may still be under way when this operation is emitted. A pipelined loop starts its own copies
// before it waits for them.
static bool toleratesCopies(Operation &op, ArrayRef<LoadOp> begun) {
  bool reads =
      llvm::any_of(op.getOperands(), [&](Value operand) { return llvm::is_contained(begun, operand.getDefiningOp()); });
  if (reads)
    return false;
  if (auto load = dyn_cast<LoadOp>(op))
    return isShared(load);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return !ringOf(loop).empty();
  return isMemoryEffectFree(&op) && !isa<scf::IfOp>(op);
}

LogicalResult KernelEmitter::emitBlock(Block &block) {
  for (Operation &op : block.without_terminator()) {
    if (onlyAhead.contains(&op))
      continue;
    // One wait serves all copies that follow each other.
    if (!toleratesCopies(op, begun) && failed(finishCopies()))
      return failure();
    if (failed(emitOperation(op)))
      return failure();
  }
  return finishCopies();
}

LogicalResult KernelEmitter::emitOperation(Operation &op) {
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return emitIf(branch);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return emitFor(loop);
  if (auto store = dyn_cast<StoreOp>(op))
    return emitStore(store);
  if (auto report = dyn_cast<ReportOp>(op))
    return emitReport(report);
  if (auto create = dyn_cast<TopCreateOp>(op))
    return emitCreate(create);
  if (auto insert = dyn_cast<TopInsertOp>(op))
    return emitInsert(insert);
  if (op.getNumResults() == 1 && isTile(op.getResult(0)))
    return emitTile(&op);
  return emitScalar(&op);
}

//===----------------------------------------------------------------------===//
// Branches
//===----------------------------------------------------------------------===//

// The results become variables that both arms assign.
LogicalResult KernelEmitter::emitIf(scf::IfOp op) {
  FailureOr<std::string> condition = text(op.getCondition());
  if (failed(condition))
    return failure();
  writer.gap();
  SmallVector<std::string> variables;
  for (OpResult result : op.getResults()) {
    auto known = reserved.find(result);
    if (known != reserved.end()) {
      variables.push_back(known->second);
    } else {
      FailureOr<std::string> type =
          isTile(result) ? tileType(result) : FailureOr<std::string>(cudaType(result.getType()).str());
      if (failed(type))
        return failure();
      variables.push_back(names.declare(result, "result"));
      writer.line(*type + " " + variables.back() + ";");
    }
  }

  bool hasElse =
      !op.getElseRegion().empty() && (op.getNumResults() > 0 || !op.elseBlock()->without_terminator().empty());
  CudaWriter::Scope arm(writer, "if (" + *condition + ")");
  if (failed(emitArm(*op.thenBlock(), variables)))
    return failure();
  if (hasElse) {
    arm.next("else");
    if (failed(emitArm(*op.elseBlock(), variables)))
      return failure();
  }
  for (auto [result, variable] : llvm::zip(op.getResults(), variables))
    values[result] = {variable};
  return success();
}

LogicalResult KernelEmitter::emitArm(Block &block, ArrayRef<std::string> variables) {
  CudaNames::Scope scope(names);
  Operation *yield = block.getTerminator();
  // A tile that an arm computes and yields is computed directly in the variable.
  for (auto [value, variable] : llvm::zip(yield->getOperands(), variables))
    if (isTile(value) && value.getParentBlock() == &block && value.getDefiningOp())
      reserved[value] = variable;
  if (failed(emitBlock(block)))
    return failure();
  for (auto [value, variable] : llvm::zip(yield->getOperands(), variables)) {
    FailureOr<std::string> yielded = text(value);
    if (failed(yielded))
      return failure();
    if (*yielded != variable)
      writer.line(variable + " = " + *yielded + ";");
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

// Whether nothing in `block` reads `carried` after the operation that makes `next`. If a branch makes `next`, this must
// hold in each arm.
static bool isLastUse(Block &block, Value carried, Value next) {
  Operation *producer = next.getDefiningOp();
  if (!producer || producer->getBlock() != &block)
    return false;
  return llvm::all_of(carried.getUsers(), [&](Operation *user) {
    Operation *place = block.findAncestorOpInBlock(*user);
    if (!place || place->isBeforeInBlock(producer))
      return true;
    if (place != producer || isa<scf::ForOp>(producer))
      return false;
    auto branch = dyn_cast<scf::IfOp>(producer);
    unsigned result = cast<OpResult>(next).getResultNumber();
    return !branch || (isLastUse(*branch.thenBlock(), carried, branch.thenYield().getOperand(result)) &&
                       isLastUse(*branch.elseBlock(), carried, branch.elseYield().getOperand(result)));
  });
}

// Whether `next`, the value with which a loop continues `carried`, may be computed into the variable of `carried`. It
// may if nothing reads the old value any more.
static bool replaces(Value next, BlockArgument carried) {
  Block *body = carried.getOwner();
  return isTile(next) && next.getParentBlock() == body && next.hasOneUse() && isLastUse(*body, carried, next);
}

LogicalResult KernelEmitter::declareCarried(scf::ForOp op) {
  for (auto [argument, init, next, result] :
       llvm::zip(op.getRegionIterArgs(), op.getInitArgs(), op.getYieldedValues(), op.getResults())) {
    FailureOr<std::string> start = text(init);
    if (failed(start))
      return failure();
    std::string name = names.declare(argument, "carried");
    StringRef type = isTile(argument) ? StringRef("auto") : cudaType(argument.getType());
    writer.line(type + " " + name + " = " + *start + ";");
    values[argument] = {name};
    values[result] = {name};
    if (replaces(next, argument))
      reserved[next] = name;
  }
  return success();
}

LogicalResult KernelEmitter::assignCarried(scf::ForOp op) {
  SmallVector<std::pair<std::string, std::string>> assignments;
  // Tiles first: a tile may be a splat of a carried scalar.
  for (bool tiles : {true, false})
    for (auto [argument, next] : llvm::zip(op.getRegionIterArgs(), op.getYieldedValues())) {
      if (isTile(next) != tiles || next == argument)
        continue;
      FailureOr<std::string> value = text(next);
      if (failed(value))
        return failure();
      std::string name = values[argument].text;
      if (*value == name)
        continue;
      // A carried value that moves to another variable is copied before any assignment overwrites it.
      if (llvm::is_contained(op.getRegionIterArgs(), next)) {
        std::string before = names.declare(*value + "_before");
        writer.line("const auto " + before + " = " + *value + ";");
        *value = before;
      }
      assignments.emplace_back(name, *value);
    }
  for (auto &[name, value] : assignments)
    writer.line(name + " = " + value + ";");
  return success();
}

LogicalResult KernelEmitter::emitFor(scf::ForOp op) {
  if (SmallVector<LoadOp> ring = ringOf(op); !ring.empty())
    return emitPipelinedFor(op, ring);
  writer.gap();
  if (failed(declareCarried(op)))
    return failure();

  CudaNames::Scope scope(names);
  FailureOr<SmallVector<CudaExpression>> bounds = expressions({op.getLowerBound(), op.getUpperBound(), op.getStep()});
  if (failed(bounds))
    return failure();
  std::string key = names.declare(op.getInductionVar(), "i");
  values[op.getInductionVar()] = {key};
  StringRef type = cudaType(op.getInductionVar().getType());
  CudaWriter::Scope body(writer, "for (" + type + " " + key + " = " + (*bounds)[0].text + "; " + key + " < " +
                                     (*bounds)[1].text + "; " + key + " += " + (*bounds)[2].text + ")");
  return emitLoopBody(op, {}, "");
}

LogicalResult KernelEmitter::emitLoopBody(scf::ForOp op, ArrayRef<LoadOp> ring, StringRef stage) {
  for (LoadOp load : ring) {
    std::string place = sharedTiles[load] + "[" + stage.str() + "]";
    if (layoutOf(load) == Layout::OperandA) {
      if (failed(takeOperand(load, place)))
        return failure();
      continue;
    }
    std::string name = names.declare(load.getResult(), "tile");
    writer.line("const auto " + name + " = " + place + ";");
    values[load.getResult()] = {name};
  }
  if (!ring.empty())
    writer.gap();
  if (failed(emitBlock(*op.getBody())) || failed(assignCarried(op)))
    return failure();
  // The next iteration overwrites the tiles that this iteration copied, so a barrier is needed. The ring of the loop
  // itself is guarded by the barrier at the start of an iteration.
  bool copies =
      op.getBody()
          ->walk([&](LoadOp load) {
            return isShared(load) && !llvm::is_contained(ring, load) ? WalkResult::interrupt() : WalkResult::advance();
          })
          .wasInterrupted();
  if (copies)
    writer.line("__syncthreads();");
  return success();
}

// With S stages, the copies of an iteration are started S - 1 iterations before it. At the start of an iteration all
// groups of copies but the newest S - 2 are complete. The barrier there makes them visible to all threads. It also
// guarantees that all threads have left the previous iteration, whose stage the next copies overwrite.
LogicalResult KernelEmitter::emitPipelinedFor(scf::ForOp op, ArrayRef<LoadOp> ring) {
  int64_t stages = ring.front()->getAttrOfType<IntegerAttr>(kRingAttr).getInt();
  for (LoadOp load : ring)
    if (load->getAttrOfType<IntegerAttr>(kRingAttr).getInt() != stages || stages < 2)
      return load.emitOpError() << "has a ring of " << load->getAttr(kRingAttr)
                                << "; the loads of a loop have one depth, at least 2";
  FailureOr<SmallVector<CudaExpression>> bounds = expressions({op.getLowerBound(), op.getUpperBound(), op.getStep()});
  if (failed(bounds))
    return failure();
  StringRef type = cudaType(op.getInductionVar().getType());
  const std::string &lower = (*bounds)[0].text, &upper = (*bounds)[1].text, &step = (*bounds)[2].text;
  // If the step is a constant, the distance of the copies is printed as one number.
  int64_t number;
  bool isNumber = !StringRef(step).getAsInteger(10, number);
  std::string ahead = isNumber ? std::to_string(number * (stages - 1)) : std::to_string(stages - 1) + " * " + step;

  include("copy.cuh");
  // Copies that were started before the loop are the oldest group.
  if (!begun.empty()) {
    writer.line("commit_copies();");
    writer.gap();
  }
  std::string fetch = names.declare("fetch");
  if (failed(emitFetch(op, ring, fetch)))
    return failure();
  {
    CudaNames::Scope scope(names);
    std::string stage = names.declare("stage");
    std::string first = (lower == "0" ? "" : lower + " + ") + stage + " * " + step;
    CudaWriter::Scope body(writer,
                           "for (int32 " + stage + " = 0; " + stage + " < " + Twine(stages - 1) + "; ++" + stage + ")");
    writer.line("if (" + first + " < " + upper + ")");
    writer.line("  " + fetch + "(" + first + ", " + stage + ");");
    writer.line("commit_copies();");
  }
  // Tiles in shared memory that only the loop reads arrive before the first tile of the ring, for which the loop waits
  // anyway. If this loop is inside another loop, the wait is printed here: the outer loop starts these copies again,
  // and this loop may not have run.
  bool isAwaitedByLoop = !op->getParentOfType<scf::ForOp>() && llvm::all_of(begun, [&](LoadOp load) {
    return layoutOf(load) == Layout::Shared &&
           llvm::all_of(load->getUsers(), [&](Operation *user) { return op->isProperAncestor(user); });
  });
  if (isAwaitedByLoop)
    begun.clear();
  if (failed(awaitCopies(stages - 1)))
    return failure();
  writer.gap();
  if (failed(declareCarried(op)))
    return failure();
  writer.gap();

  CudaNames::Scope scope(names);
  std::string key = names.declare(op.getInductionVar(), "i");
  std::string stage = names.declare("stage");
  values[op.getInductionVar()] = {key};
  std::string next = "next_stage<" + std::to_string(stages) + ">(" + stage + ")";
  std::string previous = "previous_stage<" + std::to_string(stages) + ">(" + stage + ")";
  CudaWriter::Scope body(writer, "for (" + type + " " + key + " = " + lower + ", " + stage + " = 0; " + key + " < " +
                                     upper + "; " + key + " += " + step + ", " + stage + " = " + next + ")");
  writer.line("wait_copies<" + Twine(stages - 2) + ">();");
  writer.line("__syncthreads();");
  writer.line("if (" + upper + " - " + key + " > " + ahead + ")");
  writer.line("  " + fetch + "(" + key + " + " + ahead + ", " + previous + ");");
  writer.line("commit_copies();");
  return emitLoopBody(op, ring, stage);
}

SmallVector<Operation *> KernelEmitter::scalarsAhead(scf::ForOp op, ArrayRef<LoadOp> ring) {
  llvm::SmallPtrSet<Operation *, 16> needed;
  SmallVector<Operation *> pending(ring.begin(), ring.end());
  while (!pending.empty())
    pending.pop_back_val()->walk([&](Operation *reader) {
      for (Value operand : reader->getOperands())
        if (Operation *scalar = operand.getDefiningOp();
            scalar && scalar->getBlock() == op.getBody() && needed.insert(scalar).second)
          pending.push_back(scalar);
    });
  SmallVector<Operation *> ordered;
  for (Operation &scalar : llvm::reverse(*op.getBody())) {
    if (!needed.contains(&scalar))
      continue;
    ordered.push_back(&scalar);
    bool isOnlyAhead = llvm::all_of(scalar.getUsers(), [&](Operation *user) {
      return onlyAhead.contains(user) || llvm::any_of(ring, [&](LoadOp load) { return load->isAncestor(user); });
    });
    if (isOnlyAhead)
      onlyAhead.insert(&scalar);
  }
  return SmallVector<Operation *>(llvm::reverse(ordered));
}

// The copies of one iteration, as a function of its induction variable and the stage that they fill.
LogicalResult KernelEmitter::emitFetch(scf::ForOp op, ArrayRef<LoadOp> ring, StringRef fetch) {
  CudaNames::Scope scope(names);
  std::string key = names.declare(op.getInductionVar(), "i");
  std::string stage = names.declare("stage");
  values[op.getInductionVar()] = {key};
  CudaWriter::Scope body(writer,
                         "const auto " + fetch + " = [&](" + cudaType(op.getInductionVar().getType()) + " " + key +
                             ", int32 " + stage + ")",
                         ";");
  for (Operation *scalar : scalarsAhead(op, ring))
    if (failed(emitScalar(scalar)))
      return failure();
  for (LoadOp load : ring)
    if (failed(emitCopy(load, sharedTiles[load] + "[" + stage + "]")))
      return failure();
  return success();
}

} // namespace nsa::cuda
