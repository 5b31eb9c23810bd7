// KernelEmitter: operations on tiles in registers. Each operation is one call into the device library.
#include "compiler/cuda/KernelEmitter.h"

#include "compiler/dialect/TileProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace nsa::tile;

namespace nsa::cuda {

LogicalResult KernelEmitter::emitTile(Operation *op) {
  if (isMemoryEffectFree(op) && op->use_empty())
    return success();
  if (auto splat = dyn_cast<SplatOp>(op)) {
    FailureOr<std::string> type = tileType(splat);
    FailureOr<std::string> scalar = text(splat.getScalar());
    if (failed(type) || failed(scalar))
      return failure();
    values[splat] = {"splat<" + *type + ">(" + *scalar + ")"};
    return success();
  }
  FailureOr<CudaCall> call = tileCall(op);
  if (failed(call))
    return failure();
  define(op->getResult(0), "const auto", *call);
  return success();
}

FailureOr<CudaCall> KernelEmitter::tileCall(Operation *op) {
  if (auto map = dyn_cast<MapOp>(op))
    return mapCall(map);
  if (auto dot = dyn_cast<DotOp>(op))
    return dotCall(dot);
  if (auto load = dyn_cast<LoadOp>(op))
    return loadCall(load);
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return reduceCall(reduce);
  if (auto partials = dyn_cast<ReadPartialsOp>(op)) {
    FailureOr<std::string> buffer = text(partials.getBuffer()), type = tileType(partials);
    if (failed(buffer) || failed(type))
      return failure();
    std::string argument = isColumnVector(partials.getType()) ? "kWarps" : *type;
    return CudaCall{("read_partials_" + stringifyReduceKind(partials.getKind()) + "<" + argument + ">").str(),
                    {*buffer}};
  }
  if (auto sum = dyn_cast<SumOperandOp>(op)) {
    FailureOr<std::string> operand = text(sum.getOperand());
    if (failed(operand) || failed(tileType(sum)))
      return failure();
    include("sum_operand.cuh");
    return CudaCall{"sum_operand", {*operand}};
  }
  if (auto next = dyn_cast<TopNextOp>(op))
    return nextCall(next);
  if (auto shift = dyn_cast<ShiftOp>(op)) {
    FailureOr<SmallVector<CudaExpression>> operands = expressions(op->getOperands());
    if (failed(tileType(shift)) || failed(operands))
      return failure();
    include("shift.cuh");
    return CudaCall{"shift_columns", {(*operands)[0].text, (*operands)[1].text}};
  }
  return op->emitOpError("has no translation to CUDA");
}

FailureOr<CudaCall> KernelEmitter::reduceCall(ReduceOp op) {
  const bool isStriped = layoutOf(op.getSource()) == Layout::Striped;
  if (!isStriped && layoutOf(op.getSource()) != Layout::Accumulator)
    return op.emitOpError() << "reduces a tile that is neither accumulator nor striped";
  FailureOr<std::string> source = text(op.getSource());
  if (failed(source) || failed(tileType(op)))
    return failure();
  StringRef kind = stringifyReduceKind(op.getKind());
  const bool isOfColumns = isColumnVector(op.getType());
  if (warps != 1 && isOfColumns != isStriped)
    return op.emitOpError() << "reduces " << (isOfColumns ? "columns" : "rows") << " that " << warps
                            << " warps hold; they need partial results";
  if (!isOfColumns && !isStriped)
    include("reduce.cuh");
  return CudaCall{((isOfColumns ? "reduce_rows_" : "reduce_") + kind).str(), {*source}};
}

// The parameter of a map's lambda for an element of `input`. It may hide the variable of the tile, which the lambda
// does not use.
static std::string parameterName(const std::string &input, llvm::StringSet<> &taken) {
  StringRef base = llvm::all_of(input, [](char c) { return llvm::isAlnum(c) || c == '_'; }) ? StringRef(input) : "x";
  std::string name = base.str();
  for (int number = 2; !taken.insert(name).second; ++number)
    name = (base + "_" + Twine(number)).str();
  return name;
}

FailureOr<CudaCall> KernelEmitter::mapCall(MapOp op) {
  FailureOr<std::string> type = tileType(op);
  if (failed(type))
    return failure();
  CudaNames::Scope scope(names);
  llvm::StringSet<> taken;
  SmallVector<std::string> parameters;
  CudaCall call{"map<" + *type + ">", {""}};
  for (auto [input, element] : llvm::zip(op.getInputs(), op.getElements())) {
    FailureOr<CudaExpression> outer = expression(input);
    if (failed(outer))
      return failure();
    if (!isTile(input)) {
      values[element] = *outer;
      continue;
    }
    if (failed(tileType(input)))
      return failure();
    std::string name = parameterName(outer->text, taken);
    values[element] = {name};
    parameters.push_back((cudaType(element.getType()) + " " + name).str());
    call.arguments.push_back(outer->text);
  }

  // The index of a vector is the row or the column of its elements. The other index is 0.
  bool isMatrix = typeOf(op).getRank() == 2, isColumns = isColumnVector(op.getType());
  bool wantsColumn = (isMatrix || isColumns) && !op.getColumn().use_empty();
  bool wantsRow = !isColumns && !op.getRow().use_empty();
  auto addIndex = [&](BlockArgument index, StringRef name, bool isUsed) {
    std::string declared = isUsed ? names.declare(name) : "";
    values[index] = {declared};
    parameters.push_back(isUsed ? "int32 " + declared : "int32");
  };
  if (wantsRow || wantsColumn) {
    if (!isColumns)
      addIndex(op.getRow(), "row", wantsRow);
    if (isMatrix || isColumns)
      addIndex(op.getColumn(), "column", wantsColumn);
  }
  if (!isMatrix)
    values[isColumns ? op.getRow() : op.getColumn()] = {"0"};

  // The map of a matrix does the rounding to 16 bits, because it rounds two columns at once.
  Value yielded = op.getYielded();
  auto rounding = yielded.getDefiningOp<arith::TruncFOp>();
  bool rounds = isMatrix && rounding && rounding.getIn().getType().isF32() && rounding.getOut().hasOneUse();
  if (rounds)
    values[rounding.getOut()] = {};
  FailureOr<std::string> body = lambda(llvm::join(parameters, ", "), op.getBody().front(),
                                       [&] { return text(rounds ? rounding.getIn() : yielded); });
  if (failed(body))
    return failure();
  call.arguments.front() = *body;
  return call;
}

FailureOr<CudaCall> KernelEmitter::dotCall(DotOp op) {
  std::optional<Layout> left = layoutOf(op.getA()), right = layoutOf(op.getB());
  bool isFloat = typeOf(op.getB()).getElementType().isF32();
  if (typeOf(op.getA()).getElementType() != typeOf(op.getB()).getElementType())
    return op.emitOpError() << "multiplies " << typeOf(op.getA()).getElementType() << " by "
                            << typeOf(op.getB()).getElementType() << ", which no kernel can";
  if (right != Layout::Shared)
    return op.emitOpError("has a right side that is not in shared memory");
  if (op.getTransposeA() && left != Layout::Shared)
    return op.emitOpError("has a transposed left side that is not in shared memory");
  if (left != Layout::Shared && failed(tileType(op.getA())))
    return failure();
  if (failed(tileType(op)) || failed(tileType(op.getAcc())))
    return failure();
  FailureOr<SmallVector<CudaExpression>> operands = expressions({op.getA(), op.getB(), op.getAcc()});
  if (failed(operands))
    return failure();
  if (Value from = op.getFrom()) {
    FailureOr<std::string> row = text(from);
    if (failed(row))
      return failure();
    std::string &b = (*operands)[1].text;
    b = "rows_of<" + std::to_string(op.getRightRows()) + ">(" + b + ", " + *row + ")";
  }
  if (Value where = op.getWhere()) {
    FailureOr<CudaExpression> condition = expression(where);
    if (failed(condition))
      return failure();
    operands->push_back(*condition);
  }
  if (op.getTransposeA()) {
    include("transposed_left.cuh");
    (*operands)[0].text = "transposed(" + (*operands)[0].text + ")";
  }
  // Products of floats leave their right side as it is. 16-bit ones do if they must, or if the left side is in shared
  // memory.
  bool keeps = op.getZeroAnnihilates() && !isFloat && (op.getKeepsB() || left == Layout::Shared);
  include(isFloat                   ? "dot_float.cuh"
          : keeps                   ? "dot_keeping.cuh"
          : op.getZeroAnnihilates() ? "dot_annihilating.cuh"
                                    : "dot.cuh");
  std::string callee = "dot";
  if (op.getTransposeB())
    callee += "_transposed";
  if (op.getZeroAnnihilates())
    callee += keeps ? "_keeping" : "_annihilating";
  CudaCall call{callee, {}};
  for (CudaExpression &operand : *operands)
    call.arguments.push_back(std::move(operand.text));
  return call;
}

} // namespace nsa::cuda
