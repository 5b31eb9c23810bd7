// FunctionLowering: maps and splats, and dots with the maps that are applied to their accumulators.
#include "compiler/cpu/DotLowering.h"
#include "compiler/cpu/ElementCloner.h"
#include "compiler/cpu/FunctionLowering.h"

namespace nsa::cpu {

using namespace mlir;

// Loads a vector, or one word for all lanes. Booleans are words in memory and masks in registers.
Value FunctionLowering::loadWords(Value pointer, Type element, bool isAlongLanes) {
  Type carried = element.isInteger() ? Type(b.getI32Type()) : Type(b.getF32Type());
  Value value = isAlongLanes ? b.load(b.vectorOf(carried), pointer, vectorAlignment()) : b.load(carried, pointer);
  if (element.isInteger(1))
    value = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, value, b.integer(value.getType(), 0));
  return isAlongLanes ? value : b.splat(value);
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

static bool isVector(Type type, bool ofColumns) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile && tile.getRank() == 1 && tile::isColumnVector(tile) == ofColumns;
}

// Loads the vectors of the inputs that have the shape of the result. All tiles are in scratch, so one pointer plus the
// offset of a tile reaches each of them.
void FunctionLowering::loadTiles(tile::MapOp map, Value at) {
  const auto result = cast<RankedTensorType>(map.getType());
  for (auto [input, element] : llvm::zip_equal(map.getInputs(), map.getElements()))
    if (auto type = dyn_cast<RankedTensorType>(input.getType()); type && type.getRank() == result.getRank())
      mapping.map(element, loadWords(b.at(at, plan.offsetOf(input)), type.getElementType(), /*isAlongLanes=*/true));
}

// Loads the inputs of a map to a matrix that have one value per row, or per column.
void FunctionLowering::loadVectors(tile::MapOp map, bool ofColumns, Value at, bool isAlongLanes) {
  for (auto [input, element] : llvm::zip_equal(map.getInputs(), map.getElements()))
    if (isVector(input.getType(), ofColumns))
      mapping.map(element,
                  loadWords(b.at(at, plan.offsetOf(input)), getElementTypeOrSelf(input.getType()), isAlongLanes));
}

LogicalResult FunctionLowering::lowerMap(tile::MapOp map) {
  if (accumulatorMap(map.getResult()))
    return success(); // the dots apply the map
  const TileStorage storage = plan.storageOf(map.getResult());
  splatScalars(map);
  const bool isMatrix = cast<RankedTensorType>(map.getType()).getRank() == 2;
  // The outer loop counts panels or rows, and the inner loop columns or vectors of columns. The elements of a vector
  // with one value per column run along the lanes, as those of a vector with one per row do.
  const bool ofColumns = tile::isColumnVector(map.getType());
  BlockArgument outer = ofColumns ? map.getColumn() : map.getRow();
  BlockArgument inner = ofColumns ? map.getRow() : map.getColumn();
  BlockArgument alongLanes = storage.rowMajor ? inner : outer;
  auto setNumber = [&](BlockArgument argument, Value count) {
    if (argument.use_empty())
      return;
    const bool isAlongLanes = argument == alongLanes;
    Value number =
        b.splat(b.createOrFold<arith::TruncIOp>(b.getI32Type(), isAlongLanes ? b.mul(count, b.lanes) : count));
    mapping.map(argument, isAlongLanes ? b.add(number, b.laneNumbers()) : number);
  };
  const bool readsColumns =
      isMatrix && llvm::any_of(map.getInputs().getTypes(), [](Type type) { return isVector(type, true); });
  const int64_t rowsBytes = storage.rowMajor ? 4 : vectorBytes(), columnsBytes = storage.rowMajor ? vectorBytes() : 4;
  ElementCloner cloner(b, ElementCloner::Shape::kVector);
  LogicalResult status = success();
  b.walk(storage.slices(), {{scratch, rowsBytes}, {scratch, storage.sliceWords() * 4}},
         [&](Value slice, ValueRange sliceAt) {
           // Inputs that the inner loop does not change are loaded before it.
           if (isMatrix)
             loadVectors(map, /*ofColumns=*/false, sliceAt[0], /*isAlongLanes=*/!storage.rowMajor);
           setNumber(outer, slice);
           SmallVector<Cursor, 2> cursors = {{sliceAt[1], vectorBytes()}};
           if (readsColumns)
             cursors.push_back({scratch, columnsBytes});
           b.walk(storage.sliceVectors(), cursors, [&](Value vector, ValueRange at) {
             loadTiles(map, at[0]);
             if (readsColumns)
               loadVectors(map, /*ofColumns=*/true, at[1], /*isAlongLanes=*/storage.rowMajor);
             setNumber(inner, vector);
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
    loadVectors(map, /*ofColumns=*/false, rows, /*isAlongLanes=*/true);
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
  operands.transposeA = dot.getTransposeA();
  operands.transposeB = dot.getTransposeB();
  operands.zeroAnnihilates = dot.getZeroAnnihilates();
  assert(operands.bStorage.rowMajor && operands.aStorage.rowMajor == operands.transposeA);
  cpu::lowerDot(b, operands);
  return status;
}

} // namespace nsa::cpu
