#include "compiler/language/lowering/Lowering.h"
#include "compiler/language/types/Values.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <bit>
#include <limits>

using namespace mlir;

namespace nsa::language {

Location Lowering::location(const SourceRange &range, std::string_view name) {
  Location loc = builder.getUnknownLoc();
  if (range.file) {
    const SourcePosition at = range.position();
    loc = FileLineColLoc::get(builder.getContext(), range.file->name(), at.line, at.column);
  }
  return name.empty() ? loc : Location(NameLoc::get(builder.getStringAttr(StringRef(name)), loc));
}

Location Lowering::locationOf(const Value *value) { return location(value->range, value->name); }

Type Lowering::elementType(Element element) {
  const auto named = [&](std::string_view name) -> Type {
    return name == "f32" ? builder.getF32Type() : name == "f16" ? Type(builder.getF16Type()) : builder.getBF16Type();
  };
  switch (element) {
  case Element::kBool:
    return builder.getI1Type();
  case Element::kI64:
    return builder.getI64Type();
  case Element::kF32:
    return builder.getF32Type();
  case Element::kF64:
    return builder.getF64Type();
  case Element::kIo:
    return named(program.ioType);
  case Element::kGradient:
    return tile::GradientType::get(builder.getContext(), named(program.ioType));
  case Element::kProduct:
    return named(program.productType);
  case Element::kBf16:
    return builder.getBF16Type();
  case Element::kF16:
    return builder.getF16Type();
  case Element::kI32:
  case Element::kNone:
    break;
  }
  return builder.getI32Type();
}

int64_t Lowering::rowsOf(const Shape &shape) const {
  const int64_t rows = shape.rows ? shape.rows->extent : 16 * program.warps;
  return shape.outer ? rows * shape.outer->count : rows;
}

RankedTensorType Lowering::tileType(const Shape &shape, Element element) {
  if (shape.isColumnVector)
    return RankedTensorType::get(shape.columns->extent, elementType(element),
                                 tile::ColumnAttr::get(builder.getContext()));
  SmallVector<int64_t, 2> sizes = {rowsOf(shape)};
  if (shape.columns)
    sizes.push_back(shape.columns->extent);
  return RankedTensorType::get(sizes, elementType(element));
}

static TypedAttr attributeOf(const Constant &number, Type type) {
  if (auto integer = dyn_cast<IntegerType>(type))
    return IntegerAttr::get(type, APInt(integer.getWidth(), static_cast<uint64_t>(number.integer), true, true));
  return FloatAttr::get(type, number.real);
}

mlir::Value Lowering::constant(const Constant &number, Element element) {
  const bool isReal = isFloat(element);
  mlir::Value &known =
      integers[{element, isReal ? static_cast<int64_t>(std::bit_cast<uint64_t>(number.real)) : number.integer}];
  if (!known) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(entry);
    known = arith::ConstantOp::create(builder, builder.getUnknownLoc(), attributeOf(number, elementType(element)));
  }
  return known;
}

mlir::Value Lowering::denseConstant(const Constant &number, Element element, const Shape &shape) {
  const RankedTensorType type = tileType(shape, element);
  const TypedAttr value = attributeOf(number, type.getElementType());
  return arith::ConstantOp::create(builder, builder.getUnknownLoc(), DenseElementsAttr::get(type, Attribute(value)));
}

mlir::Value Lowering::scalar(const Value *value) {
  switch (value->op) {
  case Op::kConstant:
    return constant(value->number, value->element);
  case Op::kTensor:
    return tensorArguments.lookup(value->tensor);
  case Op::kArgument:
    return scalarArguments.lookup(value->argument);
  case Op::kResult:
    // A loop that was refused has no operation.
    if (mlir::Operation *made = results.lookup(value->operands[0]))
      return made->getResult(static_cast<unsigned>(value->index));
    return {};
  case Op::kChunk:
    return chunks.lookup(value->operands[0]);
  default:
    break;
  }
  if (mlir::Value known = values.lookup(value))
    return known;
  if (value->op == Op::kWiden && value->form == Form::kScalar)
    return scalar(value->operands[0]);
  refuseUnmade(value);
  return constant(Constant::ofInteger(0), value->element);
}

mlir::Value Lowering::splat(mlir::Value scalar, RankedTensorType type) {
  return tile::SplatOp::create(builder, builder.getUnknownLoc(), type, scalar);
}

mlir::Value Lowering::broadcast(mlir::Value vector, const Shape &shape) {
  SmallVector<int64_t, 2> sizes = {rowsOf(shape), shape.columns->extent};
  return tile::BroadcastOp::create(builder, builder.getUnknownLoc(),
                                   RankedTensorType::get(sizes, getElementTypeOrSelf(vector.getType())), vector);
}

mlir::Value Lowering::tileAt(const Value *value, const Shape &shape) {
  if (value->op == Op::kConstant)
    return denseConstant(value->number, value->element, shape);
  const RankedTensorType type = tileType(shape, value->element);
  if (value->form == Form::kScalar)
    return splat(scalar(value), type);
  if (value->form == Form::kFormula)
    return formulaTile(value, shape);
  mlir::Value known = value->op == Op::kResult ? scalar(value) : values.lookup(value);
  if (!known) {
    refuseUnmade(value);
    return {};
  }
  const Shape own = shapes.of(value);
  // Axes of one extent make tiles of one type.
  if (known.getType() == type && own.columns == shape.columns && (own.rows == shape.rows || !own.rows || !shape.rows))
    return known;
  const bool isOfRows = !own.columns && rowsOf(own) == rowsOf(shape) && (own.rows == shape.rows || !own.rows);
  const bool isOfColumns = own.isColumnVector && own.columns == shape.columns;
  if (shape.columns && !shape.isColumnVector && (isOfRows || isOfColumns))
    return broadcast(known, shape);
  refuseShape(value, shape);
  return {};
}

void Lowering::refuseShape(const Value *value, const Shape &shape) {
  const AxisSet places = (shape.rows ? shape.rows->bit() : 0) | (shape.columns ? shape.columns->bit() : 0) |
                         (shape.outer ? shape.outer->bit() : 0);
  if (const std::vector<const Axis *> left = program.listOf(value->axes & ~places); !left.empty()) {
    const std::string axis(left.front()->name);
    diagnostics
        .error(value->range,
               "the axis '" + axis + "' has no place in a tile with the rows and columns " + textOf(shape))
        .hint("a tile has at most two axes that are not outer: reduce over " + axis + " first");
    return;
  }
  const Shape own = shapes.of(value);
  if (!own.rows && own.columns && !own.isColumnVector) {
    const std::string axis(own.columns->name);
    diagnostics
        .error(value->range, "this value comes from columns of memory and has equal rows; it is no value for each "
                             "place along '" +
                                 axis + "'")
        .hint("store it to columns of memory: store t[..; " + axis + "]");
    return;
  }
  refuse(value->range, "a tile with the rows and columns " + textOf(own) + " is needed as " + textOf(shape) +
                           ", which no target can do yet");
}

mlir::Value Lowering::formulaTile(const Value *formula, const Shape &shape) {
  if (formula->op == Op::kBelow || (formula->op == Op::kWiden && formula->form == Form::kFormula))
    return tileAt(formula->operands[0], shape);
  const TileKey key = {formula, shape.rows, shape.columns, shape.isColumnVector, builder.getInsertionBlock()};
  if (const auto known = tiles.find(key); known != tiles.end() && known->second)
    return known->second;
  mlir::Value made;
  const RankedTensorType type = tileType(shape, formula->element);
  const bool isMatrix = shape.columns && !shape.isColumnVector;
  const bool isOfRows = isMatrix && !(formula->axes & shape.columns->bit());
  const bool isGatheredColumns = isMatrix && formula->op == Op::kLoad && formula->axes == shape.columns->bit();
  if (isOfRows || isGatheredColumns) {
    mlir::Value vector = formulaTile(formula, isOfRows ? Shape{.rows = shape.rows}
                                                       : Shape{.columns = shape.columns, .isColumnVector = true});
    if (vector)
      made = broadcast(vector, shape);
  } else if (formula->op == Op::kIota) {
    if (formula->axis != shape.rows && formula->axis != shape.columns) {
      if (!diagnostics.hasErrors())
        refuseShape(formula, shape);
      return {};
    }
    const bool isFirst = formula->axis == shape.rows || shape.isColumnVector;
    made = tile::IotaOp::create(builder, locationOf(formula), type, isFirst ? 0 : 1);
  } else if (formula->op == Op::kLoad) {
    made = loadedFormula(formula, shape);
  } else {
    SmallVector<mlir::Value, 3> operands;
    for (const Value *operand : formula->operands)
      operands.push_back(tileAt(operand, shape));
    if (!llvm::is_contained(operands, mlir::Value()))
      made = element(formula, operands, type, locationOf(formula));
  }
  return tiles[key] = made;
}

mlir::Value Lowering::comparison(const Value *value, ArrayRef<mlir::Value> operands, Location loc) {
  const size_t number = static_cast<size_t>(value->op) - static_cast<size_t>(Op::kEqual);
  if (isFloat(value->operands[0]->element)) {
    using enum arith::CmpFPredicate;
    // x != x asks for NaN, and differs from all others in being true of it.
    static constexpr arith::CmpFPredicate kOrdered[] = {OEQ, UNE, OLT, OLE, OGT, OGE};
    return arith::CmpFOp::create(builder, loc, kOrdered[number], operands[0], operands[1]);
  }
  using enum arith::CmpIPredicate;
  static constexpr arith::CmpIPredicate kSigned[] = {eq, ne, slt, sle, sgt, sge};
  return arith::CmpIOp::create(builder, loc, kSigned[number], operands[0], operands[1]);
}

mlir::Value Lowering::castElement(mlir::Value operand, Element from, Element to, Type type, Location loc) {
  if (operand.getType() == type)
    return operand;
  const bool isTile = isa<RankedTensorType>(type);
  if (isFloat(from) && isFloat(to)) {
    if (isTile && from != Element::kF64 && to != Element::kF64)
      return tile::CastOp::create(builder, loc, type, operand);
    const unsigned before = getElementTypeOrSelf(operand.getType()).getIntOrFloatBitWidth();
    const unsigned after = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
    if (before < after)
      return arith::ExtFOp::create(builder, loc, type, operand);
    return arith::TruncFOp::create(builder, loc, type, operand);
  }
  if (isFloat(to))
    return arith::SIToFPOp::create(builder, loc, type, operand);
  if (isFloat(from))
    return arith::FPToSIOp::create(builder, loc, type, operand);
  if (to == Element::kI64)
    return arith::ExtSIOp::create(builder, loc, type, operand);
  return arith::TruncIOp::create(builder, loc, type, operand);
}

// The divisor of integers, or 1 where the quotient has no value: a CPU ends the process there, and C++ leaves the whole
// program undefined. What is known to be above 0 stays as it is.
static mlir::Value safeDivisor(OpBuilder &builder, const Value *divisor, mlir::Value left, mlir::Value right,
                               llvm::function_ref<mlir::Value(int64_t)> number, Location loc) {
  if (isPositive(divisor) || (isConstant(divisor) && divisor->number.integer < -1))
    return right;
  const auto equals = [&](mlir::Value value, int64_t integer) -> mlir::Value {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, value, number(integer));
  };
  const bool isLong = getElementTypeOrSelf(left.getType()).isInteger(64);
  const int64_t least = isLong ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int32_t>::min();
  mlir::Value overflows = arith::AndIOp::create(builder, loc, equals(right, -1), equals(left, least));
  mlir::Value isUnsafe = arith::OrIOp::create(builder, loc, equals(right, 0), overflows);
  return arith::SelectOp::create(builder, loc, isUnsafe, number(1), right);
}

mlir::Value Lowering::element(const Value *value, ArrayRef<mlir::Value> operands, Type type, Location loc) {
  const bool isReal = isFloat(value->element);
  const auto number = [&](int64_t integer) -> mlir::Value {
    const Constant constant = Constant::ofInteger(integer);
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      return arith::ConstantOp::create(
          builder, loc, DenseElementsAttr::get(tensor, Attribute(attributeOf(constant, tensor.getElementType()))));
    return this->constant(constant, value->element);
  };
  switch (value->op) {
  case Op::kAdd:
    return isReal ? arith::AddFOp::create(builder, loc, operands[0], operands[1]).getResult()
                  : arith::AddIOp::create(builder, loc, operands[0], operands[1]).getResult();
  case Op::kSubtract:
    return isReal ? arith::SubFOp::create(builder, loc, operands[0], operands[1]).getResult()
                  : arith::SubIOp::create(builder, loc, operands[0], operands[1]).getResult();
  case Op::kMultiply:
    return isReal ? arith::MulFOp::create(builder, loc, operands[0], operands[1]).getResult()
                  : arith::MulIOp::create(builder, loc, operands[0], operands[1]).getResult();
  case Op::kDivide:
    if (isReal)
      return arith::DivFOp::create(builder, loc, operands[0], operands[1]);
    return arith::DivSIOp::create(
        builder, loc, operands[0],
        safeDivisor(builder, value->operands[1], operands[0], operands[1], number, location(value->range)));
  case Op::kRemainder:
    return arith::RemSIOp::create(
        builder, loc, operands[0],
        safeDivisor(builder, value->operands[1], operands[0], operands[1], number, location(value->range)));
  case Op::kMin:
    return isReal ? arith::MinNumFOp::create(builder, loc, operands[0], operands[1]).getResult()
                  : arith::MinSIOp::create(builder, loc, operands[0], operands[1]).getResult();
  case Op::kMax:
    return isReal ? arith::MaxNumFOp::create(builder, loc, operands[0], operands[1]).getResult()
                  : arith::MaxSIOp::create(builder, loc, operands[0], operands[1]).getResult();
  case Op::kEqual:
  case Op::kUnequal:
  case Op::kLess:
  case Op::kLessEqual:
  case Op::kGreater:
  case Op::kGreaterEqual:
    return comparison(value, operands, loc);
  case Op::kAnd:
    return arith::AndIOp::create(builder, loc, operands[0], operands[1]);
  case Op::kOr:
    return arith::OrIOp::create(builder, loc, operands[0], operands[1]);
  case Op::kNot:
    return arith::XOrIOp::create(builder, loc, operands[0], number(1));
  case Op::kNegate:
    return isReal ? arith::NegFOp::create(builder, loc, operands[0]).getResult()
                  : arith::SubIOp::create(builder, loc, number(0), operands[0]).getResult();
  case Op::kSelect:
    return arith::SelectOp::create(builder, loc, operands[0], operands[1], operands[2]);
  case Op::kCast:
    return castElement(operands[0], value->operands[0]->element, value->element, type, loc);
  case Op::kFma:
    return math::FmaOp::create(builder, loc, operands[0], operands[1], operands[2]);
  case Op::kExp2:
    return math::Exp2Op::create(builder, loc, operands[0]);
  case Op::kLog2:
    return math::Log2Op::create(builder, loc, operands[0]);
  case Op::kErf:
    return math::ErfOp::create(builder, loc, operands[0]);
  case Op::kAbs:
    if (isReal)
      return math::AbsFOp::create(builder, loc, operands[0]);
    // No target has it of integers.
    return arith::MaxSIOp::create(builder, loc, operands[0],
                                  arith::SubIOp::create(builder, loc, number(0), operands[0]));
  case Op::kSqrt:
    return math::SqrtOp::create(builder, loc, operands[0]);
  case Op::kRoundEven:
    return math::RoundEvenOp::create(builder, loc, operands[0]);
  case Op::kInRange:
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, operands[0], operands[1]);
  case Op::kBelow:
  case Op::kWiden:
    return operands[0];
  default:
    break;
  }
  refuseUnmade(value);
  return operands.empty() ? mlir::Value() : operands[0];
}

} // namespace nsa::language
