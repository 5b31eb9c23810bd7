#include "compiler/language/lowering/Lower.h"

#include "compiler/language/lowering/Lowering.h"
#include "compiler/language/types/Values.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace nsa::language {

OwningOpRef<ModuleOp> lowerTileProgram(const SyntaxTree &kernel, const LibraryResolver &libraries,
                                       const GivenValues &given, MLIRContext &context, Diagnostics &diagnostics) {
  const std::unique_ptr<Program> program = typeProgram(kernel, libraries, given, diagnostics);
  if (!program)
    return {};
  OwningOpRef<ModuleOp> module = Lowering(*program, context, diagnostics).run();
  return diagnostics.hasErrors() ? OwningOpRef<ModuleOp>() : std::move(module);
}

OwningOpRef<ModuleOp> Lowering::run() {
  MLIRContext *context = builder.getContext();
  context->loadDialect<tile::TileDialect, arith::ArithDialect, func::FuncDialect, math::MathDialect, scf::SCFDialect>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder.getUnknownLoc());
  builder.setInsertionPointToStart(module->getBody());
  SmallVector<Type> types;
  for (const Tensor &tensor : program.tensors)
    if (tensor.isUsed)
      types.push_back(tile::ViewType::get(context, elementType(tensor.element), static_cast<unsigned>(tensor.rank()),
                                          tensor.pageRows));
  for (const ScalarArgument &scalar : program.scalars)
    if (scalar.isUsed)
      types.push_back(elementType(scalar.element));
  auto function = func::FuncOp::create(builder, location(program.range), llvm::StringRef(program.kernel),
                                       builder.getFunctionType(types, {}));
  function->setAttr(tile::kWarpsAttr, builder.getI32IntegerAttr(static_cast<int32_t>(program.warps)));
  entry = function.addEntryBlock();
  arguments(function);
  builder.setInsertionPointToEnd(entry);
  body(program.body);
  func::ReturnOp::create(builder, builder.getUnknownLoc());
  // Of a record only some fields are used, and of a constant choice one side.
  IRRewriter rewriter(context);
  (void)runRegionDCE(rewriter, function->getRegions());
  return module;
}

void Lowering::arguments(func::FuncOp function) {
  unsigned number = 0;
  const auto name = [&](std::string_view text, const SourceRange &range) {
    function.getArgument(number++).setLoc(location(range, text));
  };
  for (const Tensor &tensor : program.tensors)
    if (tensor.isUsed) {
      tensorArguments[&tensor] = function.getArgument(number);
      name(tensor.name, tensor.range);
    }
  for (const ScalarArgument &scalar : program.scalars)
    if (scalar.isUsed) {
      scalarArguments[&scalar] = function.getArgument(number);
      name(scalar.name, scalar.range);
    }
}

void Lowering::body(const Body *block) {
  for (const Value *value : block->values) {
    if (diagnostics.isFull())
      return;
    statement(value);
  }
}

// On a GPU a thread holds pairs of columns, in groups of eight.
bool Lowering::hasWholeColumns(const Value *value) {
  constexpr int64_t kGroup = 8;
  const Axis *columns = program.isGpu && value->isTile() ? shapes.of(value).columns : nullptr;
  if (!columns || columns->extent % kGroup == 0)
    return true;
  if (!refusedColumns.insert(columns).second)
    return false;
  const std::string axis(columns->name);
  const int64_t whole = (columns->extent + kGroup - 1) / kGroup * kGroup;
  diagnostics
      .error(value->range, "'" + axis + "' is the axis of the columns of this tile, and has " +
                               std::to_string(columns->extent) + " places; on a GPU they are a multiple of 8")
      .note(columns->range, "declared here")
      .hint("axis " + axis + " = " + std::to_string(whole) + ", and iota(" + axis + ") below " +
            std::to_string(columns->count) + " leaves the last places out");
  return false;
}

void Lowering::statement(const Value *value) {
  if (!hasWholeColumns(value))
    return;
  switch (value->op) {
  case Op::kProgramId:
    values[value] = tile::ProgramIdOp::create(builder, locationOf(value), static_cast<tile::Axis>(value->index));
    return;
  case Op::kPresent:
    values[value] = tile::PresentOp::create(builder, locationOf(value), scalar(value->operands[0]));
    return;
  case Op::kLoad:
    return load(value);
  case Op::kStore:
    return value->access->tensor->tensor->record ? storeRecord(value) : store(value);
  case Op::kReport:
    tile::ReportOp::create(builder, location(value->range), scalar(value->operands[0]), scalar(value->operands[1]),
                           scalar(value->operands[2]), scalar(value->operands[3]));
    return;
  case Op::kReduceMax:
  case Op::kReduceSum:
  case Op::kLast:
    return reduce(value);
  case Op::kShift:
    return shift(value);
  case Op::kDot:
    return dot(value);
  case Op::kMask:
    return mask(value);
  case Op::kFill:
    return fill(value);
  case Op::kTop: {
    const auto type = tile::TopType::get(builder.getContext(), value->axis->extent, value->index);
    values[value] = tile::TopCreateOp::create(builder, locationOf(value), type);
    return;
  }
  case Op::kInsert:
    return insert(value);
  case Op::kNext:
    return next(value);
  case Op::kFor:
    return loop(value);
  case Op::kIf:
    return branch(value);
  case Op::kEnds:
    return body(value->block);
  case Op::kResult:
  case Op::kCarried:
  case Op::kChunk:
  case Op::kPick:
    return; // made with the statement that they belong to, or by their user
  default:
    break;
  }
  // Elementwise.
  if (value->form == Form::kTensor) {
    values[value] = arith::SelectOp::create(builder, locationOf(value), scalar(value->operands[0]),
                                            scalar(value->operands[1]), scalar(value->operands[2]));
    return;
  }
  SmallVector<mlir::Value, 3> operands;
  if (value->form == Form::kScalar) {
    for (const Value *operand : value->operands)
      operands.push_back(scalar(operand));
    if (llvm::is_contained(operands, mlir::Value()))
      return;
    values[value] = element(value, operands, elementType(value->element), locationOf(value));
    return;
  }
  const Shape shape = shapes.of(value);
  for (const Value *operand : value->operands)
    operands.push_back(tileAt(operand, shape));
  if (!llvm::is_contained(operands, mlir::Value()))
    values[value] = element(value, operands, tileType(shape, value->element), locationOf(value));
}

void Lowering::yield(std::span<Value *const> yielded, std::span<Value *const> types, const SourceRange &range) {
  SmallVector<mlir::Value> operands;
  for (size_t i = 0; i < yielded.size(); ++i)
    operands.push_back(types[i]->isTile() ? tileAt(yielded[i], shapes.of(types[i])) : scalar(yielded[i]));
  if (!llvm::is_contained(operands, mlir::Value()))
    scf::YieldOp::create(builder, location(range), operands);
}

void Lowering::loop(const Value *value) {
  Loop &loop = *value->loop;
  SmallVector<mlir::Value> initial;
  for (size_t i = 0; i < loop.initial.size(); ++i)
    initial.push_back(loop.carried[i]->isTile() ? tileAt(loop.initial[i], shapes.of(loop.carried[i]))
                                                : scalar(loop.initial[i]));
  mlir::Value low = scalar(loop.low), high = scalar(loop.high), step = integer(loop.step);
  const Location loc = location(value->range);
  if (!low || !high || llvm::is_contained(initial, mlir::Value()))
    return;
  if (loop.isByChunk) {
    const Location chunks = location(value->range, "chunks");
    if (language::isPositive(loop.high)) {
      // (high - 1) / step + 1 takes ptxas fewer registers than the other form in some kernels.
      mlir::Value last = builder.createOrFold<arith::SubIOp>(loc, high, integer(1));
      high = builder.createOrFold<arith::AddIOp>(chunks, builder.createOrFold<arith::DivSIOp>(loc, last, step),
                                                 integer(1));
    } else {
      // (high + step - 1) / step, which is 0 where there is nothing to walk: the quotient is rounded towards 0.
      mlir::Value behind = builder.createOrFold<arith::AddIOp>(loc, high, integer(loop.step - 1));
      high = builder.createOrFold<arith::DivSIOp>(chunks, behind, step);
    }
    step = integer(1);
  }
  auto made = scf::ForOp::create(builder, loc, low, high, step, initial);
  if (loop.stages >= 0)
    made->setAttr(tile::kStagesAttr, builder.getI32IntegerAttr(static_cast<int32_t>(loop.stages)));
  SmallVector<StringRef> names;
  for (size_t i = 0; i < loop.carried.size(); ++i) {
    values[loop.carried[i]] = made.getRegionIterArg(static_cast<unsigned>(i));
    const std::string_view name = loop.carried[i]->name;
    if (!name.empty())
      made.getRegionIterArg(static_cast<unsigned>(i)).setLoc(location(loop.carried[i]->range, name));
    names.push_back(name);
  }
  made->setLoc(resultsLocation(names, value->range));
  {
    OpBuilder::InsertionGuard guard(builder);
    // A loop without values has its end already.
    if (!made.getBody()->empty())
      made.getBody()->back().erase();
    builder.setInsertionPointToEnd(made.getBody());
    mlir::Value variable = made.getInductionVar();
    if (loop.isByChunk) {
      variable.setLoc(location(loop.index->range, "chunk"));
      chunks[loop.index] = variable;
      variable = arith::MulIOp::create(builder, locationOf(loop.index), variable, integer(loop.step));
    } else {
      variable.setLoc(locationOf(loop.index));
    }
    values[loop.index] = variable;
    body(loop.body);
    yield(loop.yielded, loop.carried, value->range);
  }
  results[value] = made;
}

// The names of what an operation of several results hands on.
Location Lowering::resultsLocation(ArrayRef<StringRef> names, const SourceRange &range) {
  if (names.size() == 1)
    return location(range, names[0]);
  const Location loc = location(range);
  return names.empty() ? loc : Location(FusedLoc::get(builder.getContext(), {loc}, builder.getStrArrayAttr(names)));
}

void Lowering::branch(const Value *value) {
  const Branch &branch = *value->branch;
  SmallVector<Type> types;
  for (const Value *result : branch.results)
    types.push_back(result->isTile() ? tileType(shapes.of(result), result->element) : elementType(result->element));
  const bool hasOtherwise = !types.empty() || !branch.otherwise->values.empty();
  mlir::Value condition = scalar(value->operands[0]);
  if (!condition)
    return;
  auto made = scf::IfOp::create(builder, location(value->range), types, condition, hasOtherwise);
  const auto side = [&](mlir::Block *block, const Body *values, std::span<Value *const> yielded) {
    OpBuilder::InsertionGuard guard(builder);
    if (!block->empty())
      block->back().erase();
    builder.setInsertionPointToEnd(block);
    body(values);
    yield(yielded, branch.results, value->range);
  };
  side(made.thenBlock(), branch.then, branch.thenYielded);
  if (hasOtherwise)
    side(made.elseBlock(), branch.otherwise, branch.otherwiseYielded);
  SmallVector<StringRef> names(branch.names.begin(), branch.names.end());
  made->setLoc(resultsLocation(names, value->range));
  results[value] = made;
}

} // namespace nsa::language
