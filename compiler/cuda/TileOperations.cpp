// KernelEmitter: scalars, and operations on tiles. Each operation on tiles is one call into the device library.
#include "compiler/cuda/KernelEmitter.h"

#include "compiler/dialect/TileProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

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

static RankedTensorType typeOf(Value tile) { return cast<RankedTensorType>(tile.getType()); }

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

std::string KernelEmitter::sharedTileType(LoadOp op) {
  RankedTensorType type = typeOf(op.getResult());
  return ("SharedTile<" + cudaType(type.getElementType()) + ", " + Twine(type.getDimSize(0)) + ", " +
          Twine(type.getDimSize(1)) + ">")
      .str();
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
  if (!op->hasOneUse())
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
    for (CudaExpression &operand : *operands)
      call.arguments.push_back(std::move(operand.text));
    define(load, ("const " + cudaType(load.getType())).str(), call);
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

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

// The first column of a chunk, and how many columns of the tile exist.
FailureOr<KernelEmitter::ColumnsText> KernelEmitter::columnsText(const TileColumns &columns) {
  ColumnsText result;
  if (columns.count)
    result.count = std::to_string(*columns.count);
  if (!columns.chunk)
    return result;
  FailureOr<SmallVector<CudaExpression>> operands = expressions({columns.chunk, columns.rowColumns});
  if (failed(operands))
    return failure();
  if ((*operands)[0].text == "0") {
    result.count = columns.count ? result.count : (*operands)[1].text;
    return result;
  }
  CudaExpression first = cudaBinary((*operands)[0], "*", {std::to_string(columns.width)}, Precedence::kMultiply);
  result.first = first.text;
  if (!columns.count)
    result.count = cudaBinary((*operands)[1], "-", first, Precedence::kAdd).text;
  return result;
}

static bool isPaged(Value view) { return cast<ViewType>(view.getType()).isPaged(); }

// A lambda that tells the place of each row of a tile in a view, and the first of its columns. For a view of pages the
// lambda first tells whether the row exists, because the table has no page for a row that does not exist.
FailureOr<std::string> KernelEmitter::rowsLambda(Region &rows, AtOp at, Value view, const std::string &firstColumn) {
  FailureOr<std::string> viewText = text(view);
  if (failed(viewText))
    return failure();
  CudaNames::Scope scope(names);
  // The number of the row, and for a store with places the place of the row.
  SmallVector<std::string> parameters;
  for (BlockArgument argument : rows.getArguments()) {
    std::string name = names.declare(argument, argument.getArgNumber() == 0 ? "row" : "place");
    values[argument] = {name};
    parameters.push_back("int32 " + name);
  }
  return lambda(llvm::join(parameters, ", "), rows.front(), [&]() -> FailureOr<std::string> {
    FailureOr<SmallVector<CudaExpression>> coordinates = expressions(at.getCoordinates());
    FailureOr<std::string> exists = text(at.getExists());
    if (failed(coordinates) || failed(exists))
      return failure();
    bool isConditional = *exists != "true", asksFirst = isConditional && isPaged(view);
    CudaCall call{*viewText + (asksFirst ? ".at_if" : ".at"), {}};
    if (asksFirst)
      call.arguments.push_back(*exists);
    for (CudaExpression &coordinate : *coordinates)
      call.arguments.push_back(std::move(coordinate.text));
    return call.text() + (firstColumn.empty() ? "" : ".from_column(" + firstColumn + ")") +
           (isConditional && !asksFirst ? ".only_if(" + *exists + ")" : "");
  });
}

// Whether `value` grows by the same amount from each row to the next, or does not depend on the row.
static bool isEven(Value value, Region &rows) {
  auto isFixed = [&](Value operand) { return !rows.isAncestor(operand.getParentRegion()); };
  if (value == rows.getArgument(0) || isFixed(value))
    return true;
  if (auto sum = value.getDefiningOp<arith::AddIOp>())
    return isEven(sum.getLhs(), rows) && isEven(sum.getRhs(), rows);
  IntegerAttr factor;
  if (auto product = value.getDefiningOp<arith::MulIOp>())
    return isEven(product.getLhs(), rows) && matchPattern(product.getRhs(), m_Constant(&factor)) && factor.getInt() > 0;
  auto difference = value.getDefiningOp<arith::SubIOp>();
  return difference && isEven(difference.getLhs(), rows) && isFixed(difference.getRhs());
}

// Copies from global to shared memory. It only starts the copy.
LogicalResult KernelEmitter::emitCopy(LoadOp op, StringRef target) {
  FailureOr<std::string> view = text(op.getView());
  FailureOr<ColumnsText> columns = columnsText(op.getTileColumns());
  if (failed(view) || failed(columns))
    return failure();
  FailureOr<std::string> rows = rowsLambda(op.getRows(), op.getAt(), op.getView(), columns->first);
  if (failed(rows))
    return failure();
  include("copy.cuh");
  // Rows in different pages are not evenly spaced.
  bool isEvenlySpaced = !isPaged(op.getView()) && llvm::all_of(op.getAt().getCoordinates(), [&](Value coordinate) {
    return isEven(coordinate, op.getRows());
  });
  std::string rowOf = isEvenlySpaced ? "evenly_spaced(" + *rows + ")" : *rows;
  statement("", {"load_tile<kThreads>", {target.str(), *view, columns->count, rowOf}});
  return success();
}

// Waits for the started copies, and loads the tiles that are needed in registers from shared memory.
LogicalResult KernelEmitter::finishCopies() {
  if (begun.empty())
    return success();
  writer.line("commit_copies();");
  return awaitCopies(0);
}

// finishCopies for copies whose group is closed. `later` groups were closed after that group.
LogicalResult KernelEmitter::awaitCopies(int64_t later) {
  if (begun.empty())
    return success();
  writer.line("wait_copies<" + Twine(later) + ">();");
  writer.line("__syncthreads();");
  for (LoadOp load : std::exchange(begun, {})) {
    if (layoutOf(load) == Layout::OperandA && failed(takeOperand(load, sharedTiles[load])))
      return failure();
  }
  return success();
}

// Loads a left side from the place in shared memory to which it was copied into registers.
LogicalResult KernelEmitter::takeOperand(LoadOp op, StringRef place) {
  FailureOr<std::string> type = tileType(op);
  if (failed(type))
    return failure();
  include("dot.cuh");
  define(op, "const auto", {"load_operand<" + *type + ">", {place.str()}});
  return success();
}

FailureOr<CudaCall> KernelEmitter::loadCall(LoadOp op) {
  FailureOr<std::string> type = tileType(op);
  FailureOr<std::string> view = text(op.getView());
  FailureOr<ColumnsText> columns = columnsText(op.getTileColumns());
  if (failed(type) || failed(view) || failed(columns))
    return failure();
  FailureOr<std::string> rows = rowsLambda(op.getRows(), op.getAt(), op.getView(), columns->first);
  if (failed(rows))
    return failure();
  include("copy.cuh");
  if (typeOf(op).getRank() == 1)
    return CudaCall{"load_rows<" + *type + ">", {*view, *rows}};
  return CudaCall{"load_fragment<" + *type + ">", {*view, columns->count, *rows}};
}

LogicalResult KernelEmitter::emitStore(StoreOp op) {
  if (failed(tileType(op.getTile())))
    return failure();
  FailureOr<std::string> tile = text(op.getTile());
  FailureOr<std::string> view = text(op.getView());
  FailureOr<ColumnsText> columns = columnsText(op.getTileColumns());
  if (failed(tile) || failed(view) || failed(columns))
    return failure();
  FailureOr<std::string> rows = rowsLambda(op.getRows(), op.getAt(), op.getView(), columns->first);
  if (failed(rows))
    return failure();
  include("copy.cuh");
  CudaCall call{"store_tile", {*tile, *view, columns->count, *rows}};
  if (typeOf(op.getTile()).getRank() == 1)
    call = {"store_rows", {*tile, *view, *rows}};
  if (Value places = op.getPlaces()) {
    FailureOr<std::string> placesText = text(places);
    if (failed(tileType(places)) || failed(placesText))
      return failure();
    call.arguments.push_back(*placesText);
  }
  statement("", call);
  return success();
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

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
  if (auto load = dyn_cast<LoadOp>(op)) {
    if (load->hasAttr(kRingAttr)) {
      if (values.contains(load))
        return success(); // the loop copied it ahead of this iteration
      return load.emitOpError("is a ring outside of a loop's body");
    }
    auto place = sharedTiles.find(load);
    if (place != sharedTiles.end()) {
      if (layoutOf(load) == Layout::Shared)
        values[load] = {place->second};
      begun.push_back(load);
      return emitCopy(load, place->second);
    }
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
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    if (layoutOf(reduce.getSource()) != Layout::Accumulator)
      return op->emitOpError("reduces a tile that is no accumulator");
    FailureOr<std::string> source = text(reduce.getSource());
    if (failed(source))
      return failure();
    include("reduce.cuh");
    return CudaCall{("reduce_" + stringifyReduceKind(reduce.getKind())).str(), {*source}};
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
  return elementwiseCall(op);
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

  bool isMatrix = typeOf(op).getRank() == 2;
  bool wantsColumn = isMatrix && !op.getColumn().use_empty();
  bool wantsRow = !op.getRow().use_empty();
  auto addIndex = [&](BlockArgument index, StringRef name, bool isUsed) {
    std::string declared = isUsed ? names.declare(name) : "";
    values[index] = {declared};
    parameters.push_back(isUsed ? "int32 " + declared : "int32");
  };
  if (wantsRow || wantsColumn) {
    addIndex(op.getRow(), "row", wantsRow);
    if (isMatrix)
      addIndex(op.getColumn(), "column", wantsColumn);
  }
  if (!isMatrix)
    values[op.getColumn()] = {"0"};

  // The map does the rounding to 16 bits, because it rounds two columns at once.
  Value yielded = op.getYielded();
  auto rounding = yielded.getDefiningOp<arith::TruncFOp>();
  bool rounds = rounding && rounding.getIn().getType().isF32() && rounding.getOut().hasOneUse();
  if (rounds)
    values[rounding.getOut()] = {};
  FailureOr<std::string> body = lambda(llvm::join(parameters, ", "), op.getBody().front(),
                                       [&] { return text(rounds ? rounding.getIn() : yielded); });
  if (failed(body))
    return failure();
  call.arguments.front() = *body;
  return call;
}

// An elementwise operation that was not fused becomes a map. Index and cast operations on tiles are such operations
// too.
FailureOr<CudaCall> KernelEmitter::elementwiseCall(Operation *op) {
  Value result = op->getResult(0);
  FailureOr<std::string> type = tileType(result);
  FailureOr<SmallVector<CudaExpression>> operands = expressions(op->getOperands());
  if (failed(type) || failed(operands))
    return failure();
  CudaCall call{"map<" + *type + ">", {""}};
  if (auto iota = dyn_cast<IotaOp>(op)) {
    bool isMatrix = typeOf(result).getRank() == 2;
    call.arguments.front() = !isMatrix                  ? "[](int32 row) { return row; }"
                             : iota.getDimension() == 0 ? "[](int32 row, int32) { return row; }"
                                                        : "[](int32, int32 column) { return column; }";
    return call;
  }

  llvm::StringSet<> taken;
  SmallVector<std::string> parameters;
  SmallVector<CudaExpression> elements;
  for (auto [operand, outer] : llvm::zip(op->getOperands(), *operands)) {
    if (!isTile(operand)) {
      elements.push_back(outer);
      continue;
    }
    if (failed(tileType(operand)))
      return failure();
    elements.push_back({parameterName(outer.text, taken)});
    parameters.push_back((cudaType(typeOf(operand).getElementType()) + " " + elements.back().text).str());
    call.arguments.push_back(outer.text);
  }
  std::optional<CudaExpression> returned;
  if (isa<BroadcastOp>(op))
    returned = elements.front();
  else if (isa<CastOp>(op))
    returned = CudaExpression{"to_float(" + elements.front().text + ")"};
  else
    returned = cudaExpression(op, elements);
  if (!returned)
    return op->emitOpError("has no translation to CUDA");
  call.arguments.front() = "[&](" + llvm::join(parameters, ", ") + ") { return " + returned->text + "; }";
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
  if (left == Layout::Shared && !isFloat && op.getZeroAnnihilates())
    return op.emitOpError("annihilates by zeros of a left side in shared memory; 16-bit ones stand in registers");
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
  include(isFloat ? "dot_float.cuh" : op.getZeroAnnihilates() ? "dot_annihilating.cuh" : "dot.cuh");
  std::string callee = "dot";
  if (op.getTransposeB())
    callee += "_transposed";
  if (op.getZeroAnnihilates())
    callee += "_annihilating";
  CudaCall call{callee, {}};
  for (CudaExpression &operand : *operands)
    call.arguments.push_back(std::move(operand.text));
  return call;
}

} // namespace nsa::cuda
