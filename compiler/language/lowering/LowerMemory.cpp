#include "compiler/language/lowering/Lowering.h"
#include "compiler/language/types/Values.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace nsa::language {

mlir::Value Lowering::rowValue(const Value *value, Row &row) {
  if (value->form == Form::kScalar)
    return scalar(value);
  if (mlir::Value known = row.values.lookup(value))
    return known;
  if (value->op == Op::kBelow || value->op == Op::kWiden)
    return rowValue(value->operands[0], row);
  mlir::Value made;
  if (value->op == Op::kIota) {
    if (value->axis == row.rowAxis)
      return row.row;
    if (value->axis == row.outerAxis)
      return row.outer;
    refuseUnmade(value, "the axis '" + std::string(value->axis->name) + "' has no place in an access whose rows lie " +
                            (row.rowAxis ? "along '" + std::string(row.rowAxis->name) + "'" : "along no axis"));
    return integer(0);
  }
  SmallVector<mlir::Value> operands;
  if (value->op == Op::kLoad) {
    for (const Value *coordinate : value->access->coordinates)
      operands.push_back(rowValue(coordinate, row));
    made = tile::LoadScalarOp::create(builder, locationOf(value), elementType(value->element),
                                      scalar(value->access->tensor), operands,
                                      existence(*value->access, row, value->range));
  } else {
    for (const Value *operand : value->operands)
      operands.push_back(rowValue(operand, row));
    made = element(value, operands, elementType(value->element), locationOf(value));
  }
  return row.values[value] = made;
}

// Whether the row exists: all that its coordinates say of themselves, and the condition of the access.
mlir::Value Lowering::existence(const Access &access, Row &row, const SourceRange &range) {
  mlir::Value exists;
  SmallVector<Presence> seen;
  const auto join = [&](mlir::Value condition) {
    exists =
        exists ? arith::AndIOp::create(builder, location(range, "exists"), exists, condition).getResult() : condition;
  };
  for (const Value *coordinate : access.coordinates)
    for (const Presence &known : coordinate->presence) {
      if (llvm::is_contained(seen, known))
        continue;
      seen.push_back(known);
      join(arith::CmpIOp::create(builder, location(range, "exists"), arith::CmpIPredicate::slt,
                                 rowValue(known.index, row), rowValue(known.bound, row)));
    }
  if (access.condition)
    join(rowValue(access.condition, row));
  return exists;
}

void Lowering::rowRegion(Region &region, const Access &access, const SourceRange &range, bool onlyFirst,
                         mlir::Value *fieldOfRecord) {
  OpBuilder::InsertionGuard guard(builder);
  mlir::Block *block = builder.createBlock(&region);
  const Location loc = location(range);
  Row row;
  row.rowAxis = access.rowAxis;
  row.outerAxis = access.outerAxis;
  const mlir::Value number = row.row = block->addArgument(builder.getI32Type(), location(range, "r"));
  if (access.place) {
    row.values[access.place] = block->addArgument(builder.getI32Type(), location(range, "place"));
  }
  if (access.outerAxis && access.rowAxis) {
    mlir::Value extent = integer(access.rowAxis->extent);
    row.outer = arith::DivSIOp::create(builder, location(range, access.outerAxis->name), number, extent);
    row.row = arith::RemSIOp::create(builder, location(range, access.rowAxis->name), number, extent);
  } else if (access.outerAxis) {
    row.outer = number;
  }
  SmallVector<mlir::Value> coordinates;
  for (const Value *coordinate : access.coordinates)
    coordinates.push_back(rowValue(coordinate, row));
  mlir::Value exists = existence(access, row, range);
  if (onlyFirst) {
    mlir::Value first =
        arith::CmpIOp::create(builder, location(range, "is_first"), arith::CmpIPredicate::eq, number, integer(0));
    exists = exists ? arith::AndIOp::create(builder, loc, first, exists).getResult() : first;
  }
  if (fieldOfRecord) {
    coordinates.push_back(number);
    mlir::Value isField =
        arith::CmpIOp::create(builder, location(range, "is_field"), arith::CmpIPredicate::slt, number, *fieldOfRecord);
    exists = exists ? arith::AndIOp::create(builder, loc, isField, exists).getResult() : isField;
  }
  if (!exists)
    exists = constant(Constant::ofBool(true), Element::kBool);
  tile::AtOp::create(builder, loc, coordinates, exists);
}

// A gather of numbers, as a tile.
mlir::Value Lowering::loadedFormula(const Value *formula, const Shape &shape) {
  auto load = tile::LoadOp::create(builder, locationOf(formula), tileType(shape, formula->element),
                                   scalar(formula->access->tensor), IntegerAttr(), mlir::Value(), mlir::Value());
  rowRegion(load.getRows(), *formula->access, formula->range, false);
  return load;
}

void Lowering::load(const Value *value) {
  const Access &access = *value->access;
  if (value->form == Form::kScalar) {
    SmallVector<mlir::Value> coordinates;
    for (const Value *coordinate : access.coordinates)
      coordinates.push_back(scalar(coordinate));
    values[value] = tile::LoadScalarOp::create(builder, locationOf(value), elementType(value->element),
                                               scalar(access.tensor), coordinates, /*exists=*/mlir::Value());
    return;
  }
  const Shape shape = shapes.of(value);
  // What is gathered along the columns of a tile is one value for each column.
  const bool isOfColumns = shape.columns && !access.columnAxis;
  const Shape loaded = isOfColumns ? Shape{.columns = shape.columns, .isColumnVector = true} : shape;
  IntegerAttr columns;
  if (access.columnAxis && !access.chunk)
    columns = builder.getI64IntegerAttr(access.tensor->tensor->columns);
  auto load = tile::LoadOp::create(builder, locationOf(value), tileType(loaded, value->element), scalar(access.tensor),
                                   columns, access.chunk ? scalar(access.chunk) : mlir::Value(),
                                   access.chunk ? scalar(access.columnBound) : mlir::Value());
  if (access.staysInShared >= 0)
    load->setAttr(tile::kStayInSharedAttr, builder.getBoolAttr(access.staysInShared != 0));
  rowRegion(load.getRows(), access, value->range, false);
  values[value] = shape == loaded ? load.getResult() : broadcast(load, shape);
}

void Lowering::store(const Value *value) {
  const Access &access = *value->access;
  const Value *stored = value->operands[0];
  Shape shape{access.rowAxis, nullptr, access.columnAxis};
  // One value a column is stored as it is: each column has a place.
  for (const Value *vector : {stored, static_cast<const Value *>(access.place)})
    if (!access.columnAxis && vector && vector->isTile() && shapes.of(vector).isColumnVector)
      shape = shapes.of(vector);
  mlir::Value tile = tileAt(stored, access.rowAxis || !stored->isTile() ? shape : shapes.of(stored));
  if (!tile)
    return;
  IntegerAttr columns;
  if (access.columnAxis && !access.chunk)
    columns = builder.getI64IntegerAttr(access.tensor->tensor->columns);
  mlir::Value places;
  const Shape rows = access.columnAxis ? Shape{access.rowAxis, nullptr, nullptr} : shape;
  if (access.place && !(places = tileAt(access.place, rows)))
    return;
  auto store = tile::StoreOp::create(builder, location(value->range), tile, scalar(access.tensor), columns,
                                     access.chunk ? scalar(access.chunk) : mlir::Value(),
                                     access.chunk ? scalar(access.columnBound) : mlir::Value(), places);
  rowRegion(store.getRows(), access, value->range, !access.rowAxis);
}

// The fields are the rows of one tile.
void Lowering::storeRecord(const Value *value) {
  const Shape shape;
  const RankedTensorType type = tileType(shape, Element::kI32);
  if (static_cast<int64_t>(value->operands.size()) > type.getDimSize(0)) {
    refuse(value->range, "a record of more fields than a tile has rows");
    return;
  }
  mlir::Value row = tile::IotaOp::create(builder, location(value->range, "field"), type, 0);
  mlir::Value fields = denseConstant(Constant::ofInteger(0), Element::kI32, shape);
  for (size_t i = value->operands.size(); i-- > 0;) {
    if (isConstant(value->operands[i], 0))
      continue;
    mlir::Value number = denseConstant(Constant::ofInteger(static_cast<int64_t>(i)), Element::kI32, shape);
    mlir::Value isField = arith::CmpIOp::create(builder, location(value->range), arith::CmpIPredicate::eq, row, number);
    fields =
        arith::SelectOp::create(builder, location(value->range), isField, tileAt(value->operands[i], shape), fields);
  }
  fields.setLoc(location(value->range, "fields"));
  mlir::Value count = integer(static_cast<int64_t>(value->operands.size()));
  auto store = tile::StoreOp::create(builder, location(value->range), fields, scalar(value->access->tensor),
                                     IntegerAttr(), mlir::Value(), mlir::Value(), mlir::Value());
  rowRegion(store.getRows(), *value->access, value->range, false, &count);
}

} // namespace nsa::language
