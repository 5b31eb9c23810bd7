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

} // namespace nsa::cpu
