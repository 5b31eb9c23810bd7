#include "compiler/cpu/BufferPlan.h"
#include "compiler/cpu/ColumnLowering.h"
#include "compiler/cpu/CpuBuilder.h"
#include "compiler/cpu/DotLowering.h"
#include "compiler/cpu/ElementCloner.h"
#include "compiler/cpu/LoadPlacement.h"
#include "compiler/cpu/Passes.h"
#include "compiler/cpu/RowAccess.h"
#include "compiler/cpu/TopLowering.h"
#include "compiler/dialect/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/TypeSwitch.h"

namespace nsa::cpu {

using namespace mlir;

#define GEN_PASS_DEF_LOWERTOCPU
#include "compiler/cpu/Passes.h.inc"

namespace {

// The slots of a view, which are read at the start of the kernel.
struct View {
  Value pointer;
  SmallVector<Value> strides;
  Type element;
  // Only for a view of pages.
  int64_t pageRows = 0;
  Value table;
  Value tableStride;
};

class FunctionLowering {
public:
  FunctionLowering(func::FuncOp function, int64_t lanes)
      : function(function), b(function.getLoc(), function.getContext(), lanes), plan(BufferPlan::make(function, lanes)),
        top(b, function, plan.scratchBytes()) {}

  LogicalResult run();

private:
  void readArguments(Block &oldEntry);
  LogicalResult lowerBlock(Block &block);
  LogicalResult lower(Operation &op);
  LogicalResult lowerScalar(Operation &op);
  LogicalResult lowerLoop(scf::ForOp loop);
  LogicalResult lowerBranch(scf::IfOp branch);
  LogicalResult lowerMap(tile::MapOp map);
  LogicalResult lowerLoad(tile::LoadOp load);
  LogicalResult lowerStore(tile::StoreOp store);
  LogicalResult lowerDot(tile::DotOp dot);
  ColumnSource columnsOf(Value tile) { return {bufferOf(tile), plan.storageOf(tile)}; }
  void lowerSplat(tile::SplatOp splat);
  void lowerReport(tile::ReportOp report);

  // The address of a tile's words in scratch.
  Value bufferOf(Value tile) { return b.at(scratch, plan.offsetOf(tile)); }
  View selectView(Value condition, const View &yes, const View &no);
  Value rowPointer(const View &view, ValueRange coordinates, Value exists);
  Value pageOf(const View &view, Value sequence, Value row, Value exists);
  RowTransfer transferOf(Value tile, const View &view, const tile::TileColumns &columns);
  Value firstColumn(const tile::TileColumns &columns);
  RowAddress rowAddress(const View &view, Region &region, Value row, Value firstColumn, LogicalResult &status);
  void copyTiles(ValueRange to, ValueRange from);
  void splatScalars(tile::MapOp map);
  void loadInputs(tile::MapOp map, int64_t rank, Value at);
  Value loadLanes(Value pointer, Type element);
  void storeLanes(Value value, Value pointer, Type element);
  Type scalarType(Type type) { return type.isBF16() || type.isF16() ? b.getF32Type() : type; }
  int64_t vectorBytes() const { return b.lanes * 4; }
  unsigned vectorAlignment() const { return unsigned(vectorBytes()); }

  func::FuncOp function;
  CpuBuilder b;
  BufferPlan plan;
  TopLowering top;
  IRMapping mapping; // scalars
  llvm::DenseMap<Value, View> views;
  Value program;
  Value scratch;
  int64_t staging = 0; // offset in bytes, behind the tiles and the lists
};

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
    View &view = views[argument];
    view.element = type.getElementType();
    view.pointer = next(b.pointerType());
    for (unsigned i = 0; i < type.getRank(); ++i)
      view.strides.push_back(next(b.getI64Type()));
    ++slot; // the flags are not needed: unaligned vector access costs nothing here
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
        lowerReduce(b, reduce.getKind(), columnsOf(reduce.getSource()), bufferOf(reduce.getResult()));
        return success();
      })
      .Case([&](tile::ShiftOp shift) {
        lowerShift(b, columnsOf(shift.getSource()), bufferOf(shift.getFirst()), bufferOf(shift.getResult()));
        return success();
      })
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
        const View &view = views.at(load.getView());
        Value pointer = rowPointer(view, load.getCoordinates(), b.integer(b.getI1Type(), 1));
        mapping.map(load.getResult(), loadElement(b, pointer, view.element));
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

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

// Booleans are words in memory and masks in registers.
Value FunctionLowering::loadLanes(Value pointer, Type element) {
  Type carried = element.isInteger() ? Type(b.getI32Type()) : Type(b.getF32Type());
  Value value = b.load(b.vectorOf(carried), pointer, vectorAlignment());
  if (!element.isInteger(1))
    return value;
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, value, b.integer(value.getType(), 0));
}

void FunctionLowering::storeLanes(Value value, Value pointer, Type element) {
  if (element.isInteger(1))
    value = arith::ExtUIOp::create(b, b.vectorOf(b.getI32Type()), value);
  b.store(value, pointer, vectorAlignment());
}

void FunctionLowering::splatScalars(tile::MapOp map) {
  for (auto [input, element] : llvm::zip_equal(map.getInputs(), map.getElements()))
    if (!tile::isTile(input))
      mapping.map(element, b.splat(mapping.lookup(input)));
}

// Loads the vectors of the inputs of this rank. All tiles are in scratch, so one pointer plus the offset of a tile
// reaches each of them.
void FunctionLowering::loadInputs(tile::MapOp map, int64_t rank, Value at) {
  for (auto [input, element] : llvm::zip_equal(map.getInputs(), map.getElements()))
    if (auto type = dyn_cast<RankedTensorType>(input.getType()); type && type.getRank() == rank)
      mapping.map(element, loadLanes(b.at(at, plan.offsetOf(input)), type.getElementType()));
}

LogicalResult FunctionLowering::lowerMap(tile::MapOp map) {
  if (accumulatorMap(map.getResult()))
    return success(); // the dots apply the map
  const TileStorage storage = TileStorage::of(map.getResult(), b.lanes);
  assert(!storage.rowMajor && "AssignLayouts gives row_major to loads only");
  splatScalars(map);
  const int64_t rank = cast<RankedTensorType>(map.getType()).getRank();
  ElementCloner cloner(b, ElementCloner::Shape::kVector);
  LogicalResult status = success();
  b.walk(storage.panels(), {{scratch, vectorBytes()}, {scratch, storage.panelWords() * 4}},
         [&](Value panel, ValueRange panelAt) {
           // Inputs that the loop over columns does not change are loaded before it.
           if (rank == 2)
             loadInputs(map, 1, panelAt[0]);
           if (!map.getRow().use_empty()) {
             Value firstRow = b.createOrFold<arith::TruncIOp>(b.getI32Type(), b.mul(panel, b.lanes));
             mapping.map(map.getRow(), b.add(b.splat(firstRow), b.laneNumbers()));
           }
           b.walk(storage.columns, {{panelAt[1], vectorBytes()}}, [&](Value column, ValueRange at) {
             loadInputs(map, rank, at[0]);
             if (!map.getColumn().use_empty())
               mapping.map(map.getColumn(), b.splat(b.createOrFold<arith::TruncIOp>(b.getI32Type(), column)));
             for (Operation &op : map.getBody().front().without_terminator())
               if (succeeded(status))
                 status = cloner.clone(op, mapping);
             if (succeeded(status))
               storeLanes(cloner.lookup(map.getYielded(), mapping), b.at(at[0], plan.offsetOf(map.getResult())),
                          getElementTypeOrSelf(map.getType()));
           });
         });
  return status;
}

void FunctionLowering::lowerSplat(tile::SplatOp splat) {
  if (!plan.hasBuffer(splat.getResult()))
    return;
  Value value = b.splat(mapping.lookup(splat.getScalar()));
  b.walk(plan.storageOf(splat.getResult()).words() / b.lanes, {{bufferOf(splat.getResult()), vectorBytes()}},
         [&](Value, ValueRange at) { storeLanes(value, at[0], splat.getScalar().getType()); });
}

LogicalResult FunctionLowering::lowerDot(tile::DotOp dot) {
  DotOperands operands;
  operands.a = bufferOf(dot.getA());
  operands.b = bufferOf(dot.getB());
  if (Value first = dot.getFrom()) {
    Value row = b.createOrFold<arith::ExtSIOp>(b.getI64Type(), mapping.lookup(first));
    operands.b = b.at(operands.b, b.mul(row, plan.storageOf(dot.getB()).rowWords()), b.getF32Type());
  }
  operands.result = bufferOf(dot.getResult());
  if (Value source = accumulatorSource(dot)) {
    const bool inPlace = plan.offsetOf(source) == plan.offsetOf(dot.getResult());
    operands.acc = inPlace ? operands.result : bufferOf(source);
  }
  LogicalResult status = success();
  ElementCloner cloner(b, ElementCloner::Shape::kVector);
  tile::MapOp map = accumulatorMap(dot.getAcc());
  auto start = [&](ValueRange panel, Value rows) {
    loadInputs(map, 1, rows);
    const auto source = llvm::find(map.getInputs(), accumulatorSource(dot)) - map.getInputs().begin();
    SmallVector<Value> sums;
    for (Value value : panel) {
      mapping.map(map.getElements()[source], value);
      for (Operation &op : map.getBody().front().without_terminator())
        if (succeeded(status))
          status = cloner.clone(op, mapping);
      sums.push_back(succeeded(status) ? cloner.lookup(map.getYielded(), mapping) : value);
    }
    return sums;
  };
  if (map) {
    splatScalars(map);
    operands.start = start;
    operands.firstRows = scratch;
  }
  operands.aStorage = plan.storageOf(dot.getA());
  operands.bStorage = plan.storageOf(dot.getB());
  operands.resultStorage = plan.storageOf(dot.getResult());
  operands.transposeB = dot.getTransposeB();
  operands.zeroAnnihilates = dot.getZeroAnnihilates();
  assert(operands.bStorage.rowMajor && !operands.aStorage.rowMajor);
  cpu::lowerDot(b, operands);
  return status;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

View FunctionLowering::selectView(Value condition, const View &yes, const View &no) {
  auto select = [&](Value a, Value c) -> Value { return arith::SelectOp::create(b, condition, a, c); };
  View view = {select(yes.pointer, no.pointer), {}, yes.element, yes.pageRows, nullptr, nullptr};
  for (auto [a, c] : llvm::zip_equal(yes.strides, no.strides))
    view.strides.push_back(select(a, c));
  if (view.pageRows) {
    view.table = select(yes.table, no.table);
    view.tableStride = select(yes.tableStride, no.tableStride);
  }
  return view;
}

// The page that holds this row of the sequence. The table is not read for a row that does not exist, because it may end
// before that row.
Value FunctionLowering::pageOf(const View &view, Value sequence, Value row, Value exists) {
  auto found = scf::IfOp::create(b, TypeRange(b.getI32Type()), exists, /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(found.thenBlock());
  Value wide = b.createOrFold<arith::ExtSIOp>(b.getI64Type(), sequence);
  Value number = b.createOrFold<arith::DivUIOp>(row, b.integer(b.getI32Type(), view.pageRows));
  Value place =
      b.add(arith::MulIOp::create(b, wide, view.tableStride), b.createOrFold<arith::ExtUIOp>(b.getI64Type(), number));
  scf::YieldOp::create(b, b.load(b.getI32Type(), b.at(view.table, place, b.getI32Type())));
  b.setInsertionPointToStart(found.elseBlock());
  scf::YieldOp::create(b, b.integer(b.getI32Type(), 0));
  return found.getResult(0);
}

Value FunctionLowering::rowPointer(const View &view, ValueRange coordinates, Value exists) {
  SmallVector<Value> places =
      llvm::map_to_vector(coordinates, [&](Value coordinate) { return mapping.lookup(coordinate); });
  if (view.pageRows) {
    places[0] = pageOf(view, places[0], places[1], exists);
    places[1] = b.createOrFold<arith::RemUIOp>(places[1], b.integer(b.getI32Type(), view.pageRows));
  }
  Value offset = b.i64(0);
  for (auto [place, stride] : llvm::zip_equal(places, view.strides)) {
    Value wide = b.createOrFold<arith::ExtSIOp>(b.getI64Type(), place);
    offset = b.add(offset, arith::MulIOp::create(b, wide, stride));
  }
  return b.at(view.pointer, offset, memoryType(view.element));
}

// The first column of the tile's chunk in the row. Null if the tile has whole rows.
Value FunctionLowering::firstColumn(const tile::TileColumns &columns) {
  if (!columns.chunk)
    return nullptr;
  return b.mul(b.createOrFold<arith::ExtSIOp>(b.getI64Type(), mapping.lookup(columns.chunk)), columns.width);
}

RowTransfer FunctionLowering::transferOf(Value tile, const View &view, const tile::TileColumns &columns) {
  RowTransfer transfer;
  transfer.element = view.element;
  transfer.columns = columns.count.value_or(columns.width);
  if (!columns.count) {
    Value rowColumns = b.createOrFold<arith::ExtSIOp>(b.getI64Type(), mapping.lookup(columns.rowColumns));
    Value left = arith::SubIOp::create(b, rowColumns, firstColumn(columns));
    transfer.runtimeColumns = arith::MinSIOp::create(b, left, b.i64(columns.width));
  }
  transfer.storage = plan.storageOf(tile);
  transfer.tile = bufferOf(tile);
  transfer.staging = b.at(scratch, plan.scratchBytes() + top.bytes());
  staging = std::max(staging, stagingBytes(transfer.storage));
  return transfer;
}

// Emits the region of a load or a store for the row with this number.
RowAddress FunctionLowering::rowAddress(const View &view, Region &region, Value row, Value firstColumn,
                                        LogicalResult &status) {
  mapping.map(region.getArgument(0), row);
  auto at = cast<tile::AtOp>(region.front().getTerminator());
  if (failed(lowerBlock(region.front()))) {
    status = failure();
    return {view.pointer, b.integer(b.getI1Type(), 0)};
  }
  Value exists = mapping.lookup(at.getExists());
  Value pointer = rowPointer(view, at.getCoordinates(), exists);
  if (firstColumn)
    pointer = b.at(pointer, firstColumn, memoryType(view.element));
  return {pointer, exists};
}

LogicalResult FunctionLowering::lowerLoad(tile::LoadOp load) {
  const View &view = views.at(load.getView());
  const tile::TileColumns columns = load.getTileColumns();
  RowTransfer transfer = transferOf(load.getResult(), view, columns);
  LogicalResult status = success();
  Value first = firstColumn(columns);
  auto address = [&](Value row) { return rowAddress(view, load.getRows(), row, first, status); };
  transfer.rowAddress = address;
  lowerLoadRows(b, transfer);
  return status;
}

LogicalResult FunctionLowering::lowerStore(tile::StoreOp store) {
  const View &view = views.at(store.getView());
  const tile::TileColumns columns = store.getTileColumns();
  RowTransfer transfer = transferOf(store.getTile(), view, columns);
  LogicalResult status = success();
  Value first = firstColumn(columns);
  auto address = [&](Value row) {
    if (Value places = store.getPlaces()) {
      Value wide = b.createOrFold<arith::ExtUIOp>(b.getI64Type(), row);
      mapping.map(store.getRows().getArgument(1), b.load(b.getI32Type(), b.at(bufferOf(places), wide, b.getI32Type())));
    }
    return rowAddress(view, store.getRows(), row, first, status);
  };
  transfer.rowAddress = address;
  lowerStoreRows(b, transfer);
  return status;
}

void FunctionLowering::lowerReport(tile::ReportOp report) {
  const View &view = views.at(report.getStatus());
  Value address = LLVM::PtrToIntOp::create(b, b.getI64Type(), view.pointer);
  Value isGiven = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, address, b.i64(0));
  Value reports = arith::AndIOp::create(b, mapping.lookup(report.getBad()), isGiven);
  b.branch(
      reports,
      [&] {
        auto exchange = LLVM::AtomicCmpXchgOp::create(b, view.pointer, b.integer(b.getI32Type(), 0),
                                                      mapping.lookup(report.getCode()), LLVM::AtomicOrdering::acq_rel,
                                                      LLVM::AtomicOrdering::monotonic);
        Value isFirst = LLVM::ExtractValueOp::create(b, exchange, ArrayRef<int64_t>{1});
        b.branch(
            isFirst,
            [&] { b.store(mapping.lookup(report.getPlace()), b.at(view.pointer, view.strides[0], b.getI32Type())); },
            nullptr);
      },
      nullptr);
}

struct LowerToCpu : impl::LowerToCpuBase<LowerToCpu> {
  using LowerToCpuBase::LowerToCpuBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (lanes != 16 && lanes != 8) {
      function.emitOpError() << "cannot be lowered for vectors of " << int64_t(lanes) << " lanes; there are 16 or 8";
      return signalPassFailure();
    }
    if (failed(checkInput(function)))
      return signalPassFailure();
    sinkLoads(function);
    if (failed(FunctionLowering(function, lanes).run()))
      return signalPassFailure();
  }

private:
  static LogicalResult checkInput(func::FuncOp function) {
    if (!function.getBody().hasOneBlock() || function.getNumResults() != 0)
      return function.emitOpError("is not a tile program: one block without results");
    WalkResult walk = function.walk([](Operation *op) {
      for (Value result : op->getResults()) {
        if (!tile::isTile(result) || tile::layoutOf(result))
          continue;
        op->emitOpError("makes a tile without a layout; run tile-cpu first");
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    return failure(walk.wasInterrupted());
  }
};

} // namespace

} // namespace nsa::cpu
