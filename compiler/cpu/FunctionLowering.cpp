#include "compiler/cpu/FunctionLowering.h"

#include "compiler/cpu/ElementCloner.h"

#include "llvm/ADT/TypeSwitch.h"

namespace nsa::cpu {

using namespace mlir;

LogicalResult FunctionLowering::run() {
  Region old;
  old.takeBody(function.getBody());
  Block &oldEntry = old.front();
  Type pointer = b.pointerType();
  function.setFunctionType(b.getFunctionType({pointer, pointer, pointer}, {}));
  function.removeArgAttrsAttr();
  Block *entry = function.addEntryBlock();
  // Tensors never overlap with scratch.
  function.setArgAttr(0, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
  function.setArgAttr(2, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
  b.begin(entry);
  program = entry->getArgument(1);
  scratch = entry->getArgument(2);
  readArguments(oldEntry);

  LogicalResult status = lowerBlock(oldEntry);
  b.setInsertionPointToEnd(entry);
  func::ReturnOp::create(b);
  old.dropAllReferences();
  function->setAttr(tile::kScratchBytesAttr, b.getI64IntegerAttr(plan.scratchBytes() + top.bytes() + staging));
  return status;
}

void FunctionLowering::readArguments(Block &oldEntry) {
  Value slots = function.getArgument(0);
  int64_t slot = 0;
  auto next = [&](Type type) { return b.load(type, b.at(slots, 8 * slot++), 8); };
  for (BlockArgument argument : oldEntry.getArguments()) {
    auto type = dyn_cast<tile::ViewType>(argument.getType());
    if (!type) {
      mapping.map(argument, next(argument.getType()));
      continue;
    }
    TensorView &view = views[argument];
    auto gradient = dyn_cast<tile::GradientType>(type.getElementType());
    view.element = gradient ? gradient.getElementType() : type.getElementType();
    view.pointer = next(b.pointerType());
    for (unsigned i = 0; i < type.getRank(); ++i)
      view.strides.push_back(next(b.getI64Type()));
    // Whether rows are aligned is not needed: unaligned vector access costs nothing here.
    if (gradient)
      view.gradient = GradientFlags::of(b, next(b.getI64Type()), view.element);
    else
      ++slot;
    if (type.isPaged()) {
      view.pageRows = type.getPageRows();
      view.table = next(b.pointerType());
      view.tableStride = next(b.getI64Type());
    }
  }
}

LogicalResult FunctionLowering::lowerBlock(Block &block) {
  for (Operation &op : block.without_terminator()) {
    b.setLoc(op.getLoc());
    if (failed(lower(op)))
      return failure();
  }
  return success();
}

LogicalResult FunctionLowering::lower(Operation &op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case([&](scf::ForOp loop) { return lowerLoop(loop); })
      .Case([&](scf::IfOp branch) { return lowerBranch(branch); })
      .Case([&](tile::MapOp map) { return lowerMap(map); })
      .Case([&](tile::LoadOp load) { return lowerLoad(load); })
      .Case([&](tile::StoreOp store) { return lowerStore(store); })
      .Case([&](tile::DotOp dot) { return lowerDot(dot); })
      .Case([&](tile::ReduceOp reduce) {
        lowerReduce(b, reduce.getKind(), tile::isColumnVector(reduce.getType()), columnsOf(reduce.getSource()),
                    bufferOf(reduce.getResult()));
        return success();
      })
      .Case([&](tile::ShiftOp shift) {
        lowerShift(b, columnsOf(shift.getSource()), bufferOf(shift.getFirst()), bufferOf(shift.getResult()));
        return success();
      })
      .Case([&](tile::ConvertLayoutOp convert) { return lowerConversion(convert), success(); })
      .Case([&](tile::SplatOp splat) { return lowerSplat(splat), success(); })
      .Case([&](tile::TopCreateOp create) { return top.create(create, scratch), success(); })
      .Case([&](tile::TopInsertOp insert) {
        Value scores = insert.getScores();
        top.insert(insert, scratch, plan.storageOf(scores), bufferOf(scores), mapping.lookup(insert.getFirst()));
        return success();
      })
      .Case([&](tile::TopNextOp next) {
        top.next(next, scratch, bufferOf(next.getAfter()), bufferOf(next.getColumn()));
        return success();
      })
      .Case([&](tile::ReportOp report) { return lowerReport(report), success(); })
      .Case([&](tile::ProgramIdOp id) {
        mapping.map(id.getResult(), b.load(b.getI32Type(), b.at(program, 4 * int64_t(id.getAxis()))));
        return success();
      })
      .Case([&](tile::PresentOp present) {
        Value address = LLVM::PtrToIntOp::create(b, b.getI64Type(), views.at(present.getView()).pointer);
        mapping.map(present.getResult(), arith::CmpIOp::create(b, arith::CmpIPredicate::ne, address, b.i64(0)));
        return success();
      })
      .Case([&](arith::SelectOp choice) {
        if (!isa<tile::ViewType>(choice.getType()))
          return lowerScalar(op);
        views[choice.getResult()] = selectView(mapping.lookup(choice.getCondition()), views.at(choice.getTrueValue()),
                                               views.at(choice.getFalseValue()));
        return success();
      })
      .Case([&](tile::LoadScalarOp load) {
        lowerLoadScalar(load);
        return success();
      })
      .Default([&](Operation *other) { return lowerScalar(*other); });
}

LogicalResult FunctionLowering::lowerScalar(Operation &op) {
  if (llvm::any_of(op.getResults(), tile::isTile))
    return op.emitOpError("makes a tile but is not fused; run tile-cpu first");
  return ElementCloner(b, ElementCloner::Shape::kScalar).clone(op, mapping);
}

//===----------------------------------------------------------------------===//
// Control flow: scalars are carried as values, tiles by their buffers
//===----------------------------------------------------------------------===//

LogicalResult FunctionLowering::lowerLoop(scf::ForOp loop) {
  copyTiles(loop.getRegionIterArgs(), loop.getInitArgs());
  SmallVector<Value> initial;
  for (Value value : loop.getInitArgs())
    if (!tile::isTile(value))
      initial.push_back(mapping.lookup(value));
  auto lowered = scf::ForOp::create(b, mapping.lookup(loop.getLowerBound()), mapping.lookup(loop.getUpperBound()),
                                    mapping.lookup(loop.getStep()), initial);
  OpBuilder::InsertionGuard guard(b);
  Block *body = lowered.getBody();
  if (!body->empty())
    body->getTerminator()->erase();
  b.setInsertionPointToEnd(body);
  mapping.map(loop.getInductionVar(), lowered.getInductionVar());
  unsigned carried = 0;
  for (auto [argument, result] : llvm::zip_equal(loop.getRegionIterArgs(), loop.getResults())) {
    if (tile::isTile(argument))
      continue;
    mapping.map(argument, lowered.getRegionIterArg(carried));
    mapping.map(result, lowered.getResult(carried++));
  }
  if (failed(lowerBlock(*loop.getBody())))
    return failure();
  copyTiles(loop.getRegionIterArgs(), loop.getYieldedValues());
  SmallVector<Value> next;
  for (Value value : loop.getYieldedValues())
    if (!tile::isTile(value))
      next.push_back(mapping.lookup(value));
  scf::YieldOp::create(b, next);
  return success();
}

LogicalResult FunctionLowering::lowerBranch(scf::IfOp branch) {
  SmallVector<Type> types;
  for (Value result : branch.getResults())
    if (!tile::isTile(result))
      types.push_back(scalarType(result.getType()));
  auto lowered = scf::IfOp::create(b, types, mapping.lookup(branch.getCondition()), /*addThenBlock=*/true,
                                   /*addElseBlock=*/!branch.getElseRegion().empty());
  OpBuilder::InsertionGuard guard(b);
  for (auto [from, to] : llvm::zip_equal(branch->getRegions(), lowered->getRegions())) {
    if (from.empty())
      continue;
    Block &body = to.front();
    if (!body.empty())
      body.getTerminator()->erase();
    b.setInsertionPointToEnd(&body);
    if (failed(lowerBlock(from.front())))
      return failure();
    ValueRange yielded = from.front().getTerminator()->getOperands();
    copyTiles(branch.getResults(), yielded);
    SmallVector<Value> scalars;
    for (Value value : yielded)
      if (!tile::isTile(value))
        scalars.push_back(mapping.lookup(value));
    scf::YieldOp::create(b, scalars);
  }
  unsigned index = 0;
  for (Value result : branch.getResults())
    if (!tile::isTile(result))
      mapping.map(result, lowered.getResult(index++));
  return success();
}

void FunctionLowering::copyTiles(ValueRange to, ValueRange from) {
  const VectorType vector = b.vectorOf(b.getI32Type());
  for (const TileCopy &copy : plan.copies(to, from))
    b.walk(copy.storage.words() / b.lanes, {{scratch, vectorBytes()}}, [&](Value, ValueRange at) {
      Value value = b.load(vector, b.at(at[0], copy.fromOffset), vectorAlignment());
      b.store(value, b.at(at[0], copy.toOffset), vectorAlignment());
    });
}

} // namespace nsa::cpu
