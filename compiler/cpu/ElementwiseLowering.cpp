// FunctionLowering: maps and splats, and dots with the maps that are applied to their accumulators.
#include "compiler/cpu/DotLowering.h"
#include "compiler/cpu/ElementCloner.h"
#include "compiler/cpu/FunctionLowering.h"

namespace nsa::cpu {

using namespace mlir;

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
// reaches each of them. A map to a matrix reads one element of an input with one value per column at a time.
void FunctionLowering::loadInputs(tile::MapOp map, int64_t rank, Value at) {
  const bool isOfMatrix = cast<RankedTensorType>(map.getType()).getRank() == 2;
  for (auto [input, element] : llvm::zip_equal(map.getInputs(), map.getElements()))
    if (auto type = dyn_cast<RankedTensorType>(input.getType());
        type && type.getRank() == rank && !(isOfMatrix && tile::isColumnVector(type)))
      mapping.map(element, loadLanes(b.at(at, plan.offsetOf(input)), type.getElementType()));
}

// Whether a map to a matrix reads inputs with one value per column.
static bool readsColumns(tile::MapOp map) {
  return cast<RankedTensorType>(map.getType()).getRank() == 2 &&
         llvm::any_of(map.getInputs().getTypes(), tile::isColumnVector);
}

void FunctionLowering::loadColumns(tile::MapOp map, Value at) {
  for (auto [input, element] : llvm::zip_equal(map.getInputs(), map.getElements())) {
    if (!tile::isColumnVector(input.getType()))
      continue;
    Type type = cast<RankedTensorType>(input.getType()).getElementType();
    Value value =
        b.load(type.isInteger() ? Type(b.getI32Type()) : Type(b.getF32Type()), b.at(at, plan.offsetOf(input)));
    if (type.isInteger(1))
      value = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, value, b.integer(value.getType(), 0));
    mapping.map(element, b.splat(value));
  }
}

LogicalResult FunctionLowering::lowerMap(tile::MapOp map) {
  if (accumulatorMap(map.getResult()))
    return success(); // the dots apply the map
  const TileStorage storage = TileStorage::of(map.getResult(), b.lanes);
  assert(!storage.rowMajor && "AssignLayouts gives row_major to loads only");
  splatScalars(map);
  const int64_t rank = cast<RankedTensorType>(map.getType()).getRank();
  // The elements of a vector with one value per column run along the lanes, as those of a vector with one per row do.
  const bool isColumns = tile::isColumnVector(map.getType());
  BlockArgument alongLanes = isColumns ? map.getColumn() : map.getRow();
  BlockArgument acrossLanes = isColumns ? map.getRow() : map.getColumn();
  ElementCloner cloner(b, ElementCloner::Shape::kVector);
  LogicalResult status = success();
  b.walk(storage.panels(), {{scratch, vectorBytes()}, {scratch, storage.panelWords() * 4}},
         [&](Value panel, ValueRange panelAt) {
           // Inputs that the loop over columns does not change are loaded before it.
           if (rank == 2)
             loadInputs(map, 1, panelAt[0]);
           if (!alongLanes.use_empty()) {
             Value first = b.createOrFold<arith::TruncIOp>(b.getI32Type(), b.mul(panel, b.lanes));
             mapping.map(alongLanes, b.add(b.splat(first), b.laneNumbers()));
           }
           SmallVector<Cursor, 2> cursors = {{panelAt[1], vectorBytes()}};
           if (readsColumns(map))
             cursors.push_back({scratch, 4});
           b.walk(storage.columns, cursors, [&](Value column, ValueRange at) {
             loadInputs(map, rank, at[0]);
             if (readsColumns(map))
               loadColumns(map, at[1]);
             if (!acrossLanes.use_empty())
               mapping.map(acrossLanes, b.splat(b.createOrFold<arith::TruncIOp>(b.getI32Type(), column)));
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
  operands.transposeA = dot.getTransposeA();
  operands.transposeB = dot.getTransposeB();
  operands.zeroAnnihilates = dot.getZeroAnnihilates();
  assert(operands.bStorage.rowMajor && operands.aStorage.rowMajor == operands.transposeA);
  cpu::lowerDot(b, operands);
  return status;
}

} // namespace nsa::cpu
