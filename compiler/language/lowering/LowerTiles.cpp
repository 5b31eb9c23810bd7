#include "compiler/language/lowering/Lowering.h"
#include "compiler/language/types/Values.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace nsa::language {

void Lowering::mask(const Value *value) {
  const Shape shape = shapes.of(value);
  const Value *edge = value->operands[2];
  mlir::Value source = tileAt(value->operands[0], shape);
  if (!source)
    return;
  const auto masked = [&]() -> mlir::Value {
    mlir::Value allowed = tileAt(value->operands[1], shape);
    mlir::Value none = denseConstant(value->number, value->element, shape);
    return allowed ? arith::SelectOp::create(builder, locationOf(value), allowed, source, none).getResult()
                   : mlir::Value();
  };
  if (isConstant(edge)) {
    values[value] = edge->number.isTrue() ? masked() : source;
    return;
  }
  auto branch = scf::IfOp::create(builder, locationOf(value), source.getType(), scalar(edge), true);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(branch.thenBlock());
    if (mlir::Value result = masked())
      scf::YieldOp::create(builder, location(value->range), result);
    builder.setInsertionPointToEnd(branch.elseBlock());
    scf::YieldOp::create(builder, location(value->range), source);
  }
  values[value] = branch.getResult(0);
}

void Lowering::fill(const Value *value) {
  const Shape shape = shapes.of(value);
  mlir::Value source = tileAt(value->operands[0], shape), exists = tileAt(value->operands[1], shape);
  if (source && exists)
    values[value] = arith::SelectOp::create(builder, locationOf(value), exists, source,
                                            denseConstant(value->number, value->element, shape));
}

void Lowering::reduce(const Value *value) {
  const Value *source = value->operands[0];
  const Shape shape = shapes.of(source);
  const bool isAlongRows = shape.columns != value->axis;
  if (isAlongRows && value->op == Op::kLast) {
    refuse(value->range, "'" + std::string(value->axis->name) + "' is the axis of the rows of " +
                             program.axesText(source->axes) + ": no target takes the last row yet");
    return;
  }
  const auto kind = value->op == Op::kReduceMax   ? tile::ReduceKind::Max
                    : value->op == Op::kReduceSum ? tile::ReduceKind::Add
                                                  : tile::ReduceKind::Last;
  mlir::Value tile = tileAt(source, shape);
  if (!tile)
    return;
  const Shape reduced =
      isAlongRows ? Shape{.columns = shape.columns, .isColumnVector = true} : Shape{.rows = shape.rows};
  auto reduction =
      tile::ReduceOp::create(builder, locationOf(value), tileType(reduced, Element::kF32), kind, tile).getResult();
  values[value] = isAlongRows && !shapes.of(value).isColumnVector ? broadcast(reduction, shapes.of(value)) : reduction;
}

void Lowering::shift(const Value *value) {
  const Shape shape = shapes.of(value);
  if (shape.columns != value->axis) {
    refuse(value->range, "'" + std::string(value->axis->name) + "' is the axis of the rows of " +
                             program.axesText(value->axes) + ": no target shifts along rows yet");
    return;
  }
  mlir::Value tile = tileAt(value->operands[0], shape);
  mlir::Value first = tileAt(value->operands[1], {shape.rows, nullptr, nullptr});
  if (tile && first)
    values[value] =
        tile::ShiftOp::create(builder, locationOf(value), tileType(shape, Element::kF32), tile, first).getResult();
}

void Lowering::insert(const Value *value) {
  mlir::Value numbers = tileAt(value->operands[1], shapes.of(value->operands[1]));
  mlir::Value first = scalar(value->operands[2]);
  if (numbers && first)
    tile::TopInsertOp::create(builder, location(value->range), numbers, first, scalar(value->operands[0]));
}

void Lowering::next(const Value *value) {
  const Shape shape = shapes.of(value);
  if (mlir::Value after = tileAt(value->operands[1], shape))
    values[value] = tile::TopNextOp::create(builder, locationOf(value), tileType(shape, Element::kI32),
                                            scalar(value->operands[0]), after);
}

mlir::Value Lowering::product(const Value *value, mlir::Value left, mlir::Value right, mlir::Value initial,
                              mlir::Value from, Transposed transposed, bool annihilates, Location loc) {
  return tile::DotOp::create(builder, loc, tileType(shapes.of(value), Element::kF32), left, right, initial, from,
                             mlir::Value(), transposed.left, transposed.right, annihilates, /*keeps_b=*/false);
}

void Lowering::dot(const Value *value) {
  const Shape shape = shapes.of(value);
  const Value *left = value->operands[0], *right = value->operands[1], *edge = value->operands[3];
  if (!shape.rows || !shape.columns) {
    refuse(value->range, "a product has one axis of its left and one of its right side; this one has " +
                             program.axesText(value->axes));
    return;
  }
  if (!(left->axes & shape.rows->bit())) {
    if (edge) {
      const std::string rows(shape.rows->name);
      diagnostics
          .error(value->range, "a mask left parts out of the side of this product that lacks the axis of its rows, '" +
                                   rows + "': no target annihilates there yet")
          .note(left->range, "this side was masked")
          .hint("mask the side that has '" + rows + "': the product leaves out of both sides what the mask leaves out");
      return;
    }
    std::swap(left, right);
  }
  const Value *load = right->op == Op::kPick ? right->operands[0] : right;
  const Shape leftShape = shapes.of(left), rightShape = shapes.of(right);
  mlir::Value from;
  if (right->op == Op::kPick)
    from = arith::MulIOp::create(builder, location(value->range, "first_row"), scalar(right->operands[1]),
                                 integer(rightShape.rows->extent));
  mlir::Value a = tileAt(left, leftShape), b = tileAt(load, shapes.of(load));
  mlir::Value initial =
      value->operands[2] ? tileAt(value->operands[2], shape) : denseConstant(Constant::ofReal(0), Element::kF32, shape);
  if (!a || !b || !initial)
    return;
  const Transposed transposed{.left = leftShape.rows == value->axis, .right = rightShape.columns == value->axis};
  if (!edge || isConstant(edge)) {
    values[value] = product(value, a, b, initial, from, transposed, edge && edge->number.isTrue(), locationOf(value));
    return;
  }
  auto branch = scf::IfOp::create(builder, locationOf(value), initial.getType(), scalar(edge), true);
  {
    OpBuilder::InsertionGuard guard(builder);
    for (const bool annihilates : {true, false}) {
      builder.setInsertionPointToEnd(annihilates ? branch.thenBlock() : branch.elseBlock());
      scf::YieldOp::create(builder, location(value->range),
                           product(value, a, b, initial, from, transposed, annihilates, location(value->range)));
    }
  }
  values[value] = branch.getResult(0);
}

} // namespace nsa::language
