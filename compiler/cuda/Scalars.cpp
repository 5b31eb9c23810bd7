// KernelEmitter: the text of values, statements and lambdas, and operations on scalars.
#include "compiler/cuda/KernelEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace nsa::tile;

namespace nsa::cuda {

// A scalar that is used once is printed in place of its use, if the line stays short enough to read. The result of a
// lambda has its own line, so it may be longer.
static constexpr size_t kFoldedLength = 72;
static constexpr size_t kReturnedLength = 100;
// A lambda up to this length is printed on one line.
static constexpr size_t kLambdaLength = 96;
static constexpr size_t kContinuationIndent = 4;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

std::string CudaCall::text() const { return callee + "(" + llvm::join(arguments, ", ") + ")"; }

// Prints the statement on one line if it fits. If a lambda spans several lines, the breaks of the lambda suffice.
// Otherwise the arguments go to the next line.
void KernelEmitter::statement(const std::string &start, const CudaCall &call) {
  std::string text = start + call.text() + ";";
  if (text.find('\n') == std::string::npos && !writer.fits(text)) {
    size_t arguments = start.size() + call.callee.size() + 1;
    text = text.substr(0, arguments) + "\n" + std::string(kContinuationIndent, ' ') + text.substr(arguments);
  }
  writer.line(text);
}

void KernelEmitter::define(Value value, StringRef declaration, const CudaCall &call) {
  auto known = reserved.find(value);
  if (known != reserved.end()) {
    values[value] = {known->second};
    statement(known->second + " = ", call);
    return;
  }
  std::string name = names.declare(value, isTile(value) ? "tile" : "value");
  values[value] = {name};
  statement((declaration + " " + name + " = ").str(), call);
}

// The type of a tile in registers.
FailureOr<std::string> KernelEmitter::tileType(Value tile) {
  Operation *producer = tile.getDefiningOp() ? tile.getDefiningOp() : tile.getParentBlock()->getParentOp();
  RankedTensorType type = typeOf(tile);
  StringRef element = cudaType(type.getElementType());
  std::optional<Layout> layout = layoutOf(tile);
  if (!layout)
    return producer->emitError() << "makes a tile without '" << kLayoutAttr << "': layouts were not assigned";
  if (element.empty())
    return producer->emitError() << "makes a tile of " << type.getElementType() << ", which has no counterpart in CUDA";
  int64_t rows = type.getDimSize(0);
  if (layout == Layout::Column && isColumnVector(type)) {
    include("column.cuh");
    return ("ColumnVector<" + element + ", " + Twine(rows) + ">").str();
  }
  if (layout == Layout::Striped || layout == Layout::Uniform) {
    include("striped.cuh");
    std::string sizes =
        llvm::join(llvm::map_range(type.getShape(), [](int64_t size) { return std::to_string(size); }), ", ");
    StringRef name = layout == Layout::Uniform ? "UniformRows<"
                     : isColumnVector(type)    ? "StripedColumns<"
                                               : "StripedTile<";
    return (name + element + ", " + sizes + ", kWarps>").str();
  }
  if (rows % (16 * warps) != 0)
    return producer->emitError() << "makes a tile of " << rows << " rows, which " << warps
                                 << " warps of 16 rows cannot split";
  std::string head = (element + ", " + Twine(rows) + ", ").str();
  if (type.getRank() == 1 && *layout == Layout::Row) {
    include("map.cuh");
    return "RowVector<" + head + "kWarps>";
  }
  if (type.getRank() == 2 && (*layout == Layout::Accumulator || *layout == Layout::OperandA)) {
    include("map.cuh");
    return "Fragment<" + head + std::to_string(type.getDimSize(1)) + ", kWarps>";
  }
  return producer->emitError() << "makes a tile of rank " << type.getRank() << " in the layout "
                               << stringifyLayout(*layout) << ", which is not in registers";
}

FailureOr<CudaExpression> KernelEmitter::expression(Value value) {
  auto known = values.find(value);
  if (known != values.end())
    return known->second;
  Attribute constant;
  if (!isTile(value) && matchPattern(value, m_Constant(&constant)))
    if (std::optional<CudaExpression> literal = cudaConstant(constant))
      return *literal;
  if (Operation *producer = value.getDefiningOp())
    return producer->emitError("makes a value that cannot be used here in a kernel");
  return emitError(value.getLoc(), "this value cannot be used here in a kernel");
}

FailureOr<std::string> KernelEmitter::text(Value value) {
  FailureOr<CudaExpression> known = expression(value);
  if (failed(known))
    return failure();
  return known->text;
}

FailureOr<SmallVector<CudaExpression>> KernelEmitter::expressions(ValueRange operands) {
  SmallVector<CudaExpression> result;
  for (Value operand : operands) {
    FailureOr<CudaExpression> known = expression(operand);
    if (failed(known))
      return failure();
    result.push_back(std::move(*known));
  }
  return result;
}

// A lambda with the code of `body` up to its terminator and then `return result`.
FailureOr<std::string> KernelEmitter::lambda(StringRef parameters, Block &body,
                                             const std::function<FailureOr<std::string>()> &result) {
  CudaWriter outer = std::exchange(writer, CudaWriter());
  LogicalResult emitted = success();
  for (Operation &op : body.without_terminator())
    if (succeeded(emitted))
      emitted = emitScalar(&op);
  std::string statements = std::exchange(writer, std::move(outer)).text();
  if (failed(emitted))
    return failure();
  FailureOr<std::string> returned = result();
  if (failed(returned))
    return failure();
  std::string head = ("[&](" + parameters + ") {").str();
  std::string oneLine = head + " return " + *returned + "; }";
  if (statements.empty() && oneLine.size() <= kLambdaLength)
    return oneLine;
  statements += "return " + *returned + ";";
  std::string text = head;
  for (StringRef line : llvm::split(statements, '\n'))
    text += "\n  " + line.str();
  return text + "\n}";
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

// Whether the only use of a scalar may contain its expression instead of its name.
static bool isFoldable(Operation *op, const CudaExpression &expression) {
  if (!op->hasOneUse() || op->hasAttr(kNamedAttr))
    return false;
  Operation *user = *op->user_begin();
  if (user->getBlock() != op->getBlock())
    return false;
  // A map would compute the expression for each element, and a loop in each iteration.
  if (isa<scf::ForOp, MapOp, SplatOp>(user) || (isa<scf::YieldOp>(user) && isa<scf::ForOp>(user->getParentOp())))
    return false;
  // A condition of several parts is easier to read with a name.
  if (isa<scf::IfOp>(user) && isa<arith::AndIOp, arith::OrIOp>(op))
    return false;
  return expression.text.size() <= (isa<tile::YieldOp>(user) ? kReturnedLength : kFoldedLength);
}

LogicalResult KernelEmitter::emitScalar(Operation *op) {
  if (isMemoryEffectFree(op) && op->use_empty())
    return success();
  if (auto load = dyn_cast<LoadScalarOp>(op)) {
    FailureOr<SmallVector<CudaExpression>> operands = expressions(op->getOperands());
    if (failed(operands))
      return failure();
    CudaCall call{"load_scalar", {}};
    for (CudaExpression &operand : MutableArrayRef(*operands).drop_back(load.getExists() ? 1 : 0))
      call.arguments.push_back(std::move(operand.text));
    StringRef type = cudaType(load.getType());
    if (load.getExists()) {
      std::string name = names.declare(load, "value");
      values[load] = {name};
      CudaExpression zero{load.getType().isInteger() ? "0" : (type + "{}").str()};
      writer.wrapped(("const " + type + " " + name + " = ").str() +
                     cudaSelect(operands->back(), {call.text()}, zero).text + ";");
      return success();
    }
    define(load, ("const " + type).str(), call);
    return success();
  }
  if (auto program = dyn_cast<ProgramIdOp>(op)) {
    std::string name = names.declare(program, "program");
    writer.line("const int32 " + name + " = blockIdx." + stringifyAxis(program.getAxis()) + ";");
    values[program] = {name};
    return success();
  }
  if (auto present = dyn_cast<PresentOp>(op)) {
    FailureOr<std::string> view = text(present.getView());
    if (failed(view))
      return failure();
    values[present] = {*view + ".present()"};
    return success();
  }
  if (auto choice = dyn_cast<arith::SelectOp>(op); choice && isa<ViewType>(choice.getType())) {
    FailureOr<SmallVector<CudaExpression>> operands = expressions(op->getOperands());
    if (failed(operands))
      return failure();
    std::string name = names.declare(choice, "view");
    writer.wrapped("const auto " + name + " = " + cudaSelect((*operands)[0], (*operands)[1], (*operands)[2]).text +
                   ";");
    values[choice] = {name};
    return success();
  }
  Attribute constant;
  if (matchPattern(op, m_Constant(&constant))) {
    if (std::optional<CudaExpression> literal = cudaConstant(constant)) {
      values[op->getResult(0)] = *literal;
      return success();
    }
  }

  FailureOr<SmallVector<CudaExpression>> operands = expressions(op->getOperands());
  if (failed(operands))
    return failure();
  std::optional<CudaExpression> translated = cudaExpression(op, *operands);
  if (!translated)
    return op->emitOpError("has no translation to CUDA");
  Value result = op->getResult(0);
  if (isFoldable(op, *translated)) {
    values[result] = std::move(*translated);
    return success();
  }
  std::string name = names.declare(result, "value");
  writer.wrapped(("const " + cudaType(result.getType()) + " " + name + " = " + translated->text + ";").str());
  values[result] = {name};
  return success();
}

LogicalResult KernelEmitter::emitReport(ReportOp op) {
  FailureOr<SmallVector<CudaExpression>> operands = expressions(op->getOperands());
  if (failed(operands))
    return failure();
  include("report.cuh");
  CudaCall call{"report", {}};
  for (CudaExpression &operand : *operands)
    call.arguments.push_back(std::move(operand.text));
  statement("", call);
  return success();
}

} // namespace nsa::cuda
