// KernelEmitter: blocks, branches and loops of a kernel.
#include "compiler/cuda/KernelEmitter.h"

using namespace mlir;
using namespace nsa::tile;

namespace nsa::cuda {

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

LogicalResult KernelEmitter::emitBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(emitOperation(op)))
      return failure();
  return success();
}

LogicalResult KernelEmitter::emitOperation(Operation &op) {
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return emitIf(branch);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return emitFor(loop);
  if (auto store = dyn_cast<StoreOp>(op))
    return emitStore(store);
  if (auto copy = dyn_cast<CopyOp>(op))
    return emitCopy(copy);
  if (auto read = dyn_cast<ReadOp>(op))
    return emitRead(read);
  if (isa<WriteOp, WritePartialsOp>(op))
    return emitWrite(op);
  if (auto fetch = dyn_cast<FetchOp>(op))
    return emitFetch(fetch);
  if (auto ahead = dyn_cast<FetchAheadOp>(op))
    return emitFetchAhead(ahead);
  if (isa<BufferOp>(op))
    return success(); // declared in the frame of the kernel
  if (isa<CommitCopiesOp, WaitCopiesOp, BarrierOp>(op))
    return emitSynchronization(op);
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
  auto fetches = op.getBody()->getOps<FetchAheadOp>();
  FetchAheadOp ahead = fetches.empty() ? nullptr : *fetches.begin();
  writer.gap();
  if (failed(declareCarried(op)))
    return failure();
  if (ahead)
    writer.gap();

  CudaNames::Scope scope(names);
  FailureOr<SmallVector<CudaExpression>> bounds = expressions({op.getLowerBound(), op.getUpperBound(), op.getStep()});
  if (failed(bounds))
    return failure();
  std::string key = names.declare(op.getInductionVar(), "i");
  values[op.getInductionVar()] = {key};
  std::string start = (cudaType(op.getInductionVar().getType()) + " " + key + " = " + (*bounds)[0].text).str();
  std::string next = key + " += " + (*bounds)[2].text;
  if (ahead) {
    std::string stage = names.declare(ahead.getStage(), "stage");
    values[ahead.getStage()] = {stage};
    start += ", " + stage + " = 0";
    next += ", " + stage + " = next_stage<" + std::to_string(ahead.getFetchOp().getStages()) + ">(" + stage + ")";
  }
  CudaWriter::Scope body(writer, "for (" + start + "; " + key + " < " + (*bounds)[1].text + "; " + next + ")");
  // The assignments of carried values are part of the iteration that a barrier ends.
  Block &block = *op.getBody();
  auto barrier = dyn_cast_or_null<BarrierOp>(block.getTerminator()->getPrevNode());
  for (Operation &nested : block.without_terminator())
    if (&nested != barrier && failed(emitOperation(nested)))
      return failure();
  if (failed(assignCarried(op)))
    return failure();
  return barrier ? emitSynchronization(*barrier) : success();
}

//===----------------------------------------------------------------------===//
// Copies and barriers
//===----------------------------------------------------------------------===//

LogicalResult KernelEmitter::emitSynchronization(Operation &op) {
  include("copy.cuh");
  if (isa<BarrierOp>(op)) {
    writer.line("__syncthreads();");
  } else if (auto wait = dyn_cast<WaitCopiesOp>(op)) {
    writer.line("wait_copies<" + Twine(wait.getNewest()) + ">();");
  } else {
    writer.line("commit_copies();");
    if (isa_and_nonnull<FetchOp>(op.getNextNode()))
      writer.gap();
  }
  return success();
}

// The copies of one iteration are a function of its induction variable and the stage that they fill. The first
// iterations call it before the loop.
LogicalResult KernelEmitter::emitFetch(FetchOp op) {
  FailureOr<SmallVector<CudaExpression>> bounds = expressions({op.getLower(), op.getUpper(), op.getStep()});
  if (failed(bounds))
    return failure();
  const std::string &lower = (*bounds)[0].text, &upper = (*bounds)[1].text, &step = (*bounds)[2].text;
  include("copy.cuh");
  std::string fetch = names.declare(op.getFetch(), "fetch");
  values[op.getFetch()] = {fetch};
  {
    CudaNames::Scope scope(names);
    std::string key = names.declare(op.getIndex(), "i");
    std::string stage = names.declare(op.getStage(), "stage");
    values[op.getIndex()] = {key};
    values[op.getStage()] = {stage};
    CudaWriter::Scope body(writer,
                           "const auto " + fetch + " = [&](" + cudaType(op.getIndex().getType()) + " " + key +
                               ", int32 " + stage + ")",
                           ";");
    for (Operation &nested : op.getBody().front())
      if (failed(emitOperation(nested)))
        return failure();
  }
  CudaNames::Scope scope(names);
  std::string stage = names.declare("stage");
  std::string first = (lower == "0" ? "" : lower + " + ") + stage + " * " + step;
  CudaWriter::Scope body(writer, "for (int32 " + stage + " = 0; " + stage + " < " + Twine(op.getStages() - 1) + "; ++" +
                                     stage + ")");
  writer.line("if (" + first + " < " + upper + ")");
  writer.line("  " + fetch + "(" + first + ", " + stage + ");");
  writer.line("commit_copies();");
  return success();
}

LogicalResult KernelEmitter::emitFetchAhead(FetchAheadOp op) {
  FetchOp fetch = op.getFetchOp();
  FailureOr<SmallVector<CudaExpression>> operands =
      expressions({fetch.getFetch(), op.getIndex(), fetch.getUpper(), fetch.getStep(), op.getStage()});
  if (failed(operands))
    return failure();
  const std::string &callee = (*operands)[0].text, &key = (*operands)[1].text, &upper = (*operands)[2].text,
                    &step = (*operands)[3].text, &stage = (*operands)[4].text;
  int64_t distance = static_cast<int64_t>(fetch.getStages()) - 1;
  // If the step is a constant, the distance of the copies is printed as one number.
  int64_t number;
  bool isNumber = !StringRef(step).getAsInteger(10, number);
  std::string ahead = isNumber ? std::to_string(number * distance) : std::to_string(distance) + " * " + step;
  std::string previous = "previous_stage<" + std::to_string(fetch.getStages()) + ">(" + stage + ")";
  writer.line("if (" + upper + " - " + key + " > " + ahead + ")");
  writer.line("  " + callee + "(" + key + " + " + ahead + ", " + previous + ");");
  return success();
}

} // namespace nsa::cuda
