// FunctionLowering: views of tensors, loads and stores of tiles, and reports into the status word.
#include "compiler/cpu/FunctionLowering.h"

namespace nsa::cpu {

using namespace mlir;

TensorView FunctionLowering::selectView(Value condition, const TensorView &yes, const TensorView &no) {
  auto select = [&](Value a, Value c) -> Value { return arith::SelectOp::create(b, condition, a, c); };
  TensorView view = {select(yes.pointer, no.pointer), {}, yes.element, {}, yes.pageRows, nullptr, nullptr};
  for (auto [a, c] : llvm::zip_equal(yes.strides, no.strides))
    view.strides.push_back(select(a, c));
  if (yes.gradient)
    view.gradient = {
        select(yes.gradient.isPlain, no.gradient.isPlain), select(yes.gradient.holdsFloats, no.gradient.holdsFloats),
        select(yes.gradient.adds, no.gradient.adds), select(yes.gradient.elementBytes, no.gradient.elementBytes)};
  if (view.pageRows) {
    view.table = select(yes.table, no.table);
    view.tableStride = select(yes.tableStride, no.tableStride);
  }
  return view;
}

// The page that holds this row of the sequence. The table is not read for a row that does not exist, because it may end
// before that row.
Value FunctionLowering::pageOf(const TensorView &view, Value sequence, Value row, Value exists) {
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

Value FunctionLowering::rowPointer(const TensorView &view, ValueRange coordinates, Value exists) {
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
  return elementAt(view, view.pointer, offset);
}

Value FunctionLowering::elementAt(const TensorView &view, Value pointer, Value index) {
  if (!view.gradient)
    return b.at(pointer, index, memoryType(view.element));
  return b.at(pointer, arith::MulIOp::create(b, index, view.gradient.elementBytes), b.getI8Type());
}

// The first column of the tile's chunk in the row. Null if the tile has whole rows.
Value FunctionLowering::firstColumn(const tile::TileColumns &columns) {
  if (!columns.chunk)
    return nullptr;
  return b.mul(b.createOrFold<arith::ExtSIOp>(b.getI64Type(), mapping.lookup(columns.chunk)), columns.width);
}

RowTransfer FunctionLowering::transferOf(Value tile, const TensorView &view, const tile::TileColumns &columns) {
  RowTransfer transfer;
  transfer.element = view.element;
  transfer.gradient = view.gradient;
  transfer.columns = columns.count.value_or(columns.width);
  if (!columns.count) {
    Value rowColumns = b.createOrFold<arith::ExtSIOp>(b.getI64Type(), mapping.lookup(columns.rowColumns));
    Value left = arith::SubIOp::create(b, rowColumns, firstColumn(columns));
    // A chunk behind the end of the row has no columns.
    Value there = arith::MaxSIOp::create(b, left, b.i64(0));
    transfer.runtimeColumns = arith::MinSIOp::create(b, there, b.i64(columns.width));
  }
  transfer.storage = plan.storageOf(tile);
  transfer.tile = bufferOf(tile);
  transfer.staging = b.at(scratch, plan.scratchBytes() + top.bytes());
  staging = std::max(staging, stagingBytes(transfer.storage));
  return transfer;
}

// Emits the region of a load or a store for the row with this number.
RowAddress FunctionLowering::rowAddress(const TensorView &view, Region &region, Value row, Value firstColumn,
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
    pointer = elementAt(view, pointer, firstColumn);
  return {pointer, exists};
}

void FunctionLowering::lowerLoadScalar(tile::LoadScalarOp load) {
  const TensorView &view = views.at(load.getView());
  Value exists = load.getExists() ? mapping.lookup(load.getExists()) : b.integer(b.getI1Type(), 1);
  auto element = [&] { return loadElement(b, rowPointer(view, load.getCoordinates(), exists), view.element); };
  if (!load.getExists()) {
    mapping.map(load.getResult(), element());
    return;
  }
  auto branch = scf::IfOp::create(
      b, exists, [&](OpBuilder &, Location) { scf::YieldOp::create(b, element()); },
      [&](OpBuilder &, Location) {
        Type type = load.getType().isInteger() ? load.getType() : Type(b.getF32Type());
        scf::YieldOp::create(b, type.isInteger() ? b.integer(type, 0) : b.real(type, 0.0));
      });
  mapping.map(load.getResult(), branch.getResult(0));
}

LogicalResult FunctionLowering::lowerLoad(tile::LoadOp load) {
  const TensorView &view = views.at(load.getView());
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
  const TensorView &view = views.at(store.getView());
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

void FunctionLowering::lowerConversion(tile::ConvertLayoutOp convert) {
  const TileStorage &storage = plan.storageOf(convert.getSource());
  staging = std::max(staging, conversionBytes(storage));
  lowerToRowMajor(b, storage, bufferOf(convert.getSource()), bufferOf(convert.getResult()),
                  b.at(scratch, plan.scratchBytes() + top.bytes()));
}

void FunctionLowering::lowerReport(tile::ReportOp report) {
  const TensorView &view = views.at(report.getStatus());
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

} // namespace nsa::cpu
