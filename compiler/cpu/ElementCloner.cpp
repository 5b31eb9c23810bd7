#include "compiler/cpu/ElementCloner.h"

#include "compiler/cpu/MathExpansion.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

#include "llvm/ADT/TypeSwitch.h"

namespace nsa::cpu {

using namespace mlir;

namespace {

bool isSmallFloat(Type type) { return type.isBF16() || type.isF16(); }

bool isF64(Type type) { return getElementTypeOrSelf(type).isF64(); }

// Whether an operation has a lowering for f64, where an operand or its result is f64. A 16-bit float is carried as f32,
// so a conversion between it and f64 would round twice.
bool isLoweredForF64(Operation &op) {
  if (isa<arith::ExtFOp, arith::TruncFOp>(op))
    return !isSmallFloat(op.getOperand(0).getType()) && !isSmallFloat(op.getResult(0).getType());
  return !isa<math::MathDialect>(op.getDialect()) ||
         isa<math::Exp2Op, math::FmaOp, math::AbsFOp, math::RoundEvenOp>(op);
}

} // namespace

Type ElementCloner::convert(Type type) const {
  Type element = isSmallFloat(type) ? Float32Type::get(type.getContext()) : type;
  return shape == Shape::kVector ? Type(b.vectorOf(element)) : element;
}

Value ElementCloner::lookup(Value value, IRMapping &mapping) {
  Value copy = mapping.lookup(value);
  if (shape == Shape::kVector && !isa<VectorType>(copy.getType()))
    copy = b.splat(copy);
  return copy;
}

Value ElementCloner::roundTo(Value value, Type type) {
  return isSmallFloat(type) ? decode16(b, encode16(b, value, type), type) : value;
}

// Lowers the operations of `math` that are one instruction or a short sequence of instructions. Null for all others.
Value ElementCloner::expand(Operation &op, ValueRange operands) {
  return llvm::TypeSwitch<Operation *, Value>(&op)
      .Case([&](math::Exp2Op) { return expandExp2(b, operands[0]); })
      .Case([&](math::Log2Op) { return expandLog2(b, operands[0]); })
      .Case([&](math::ErfOp) { return expandErf(b, operands[0]); })
      .Case([&](math::FmaOp) { return b.fma(operands[0], operands[1], operands[2]); })
      .Case([&](math::AbsFOp) { return LLVM::FAbsOp::create(b, operands[0].getType(), operands[0]); })
      .Case([&](math::SqrtOp) { return LLVM::SqrtOp::create(b, operands[0].getType(), operands[0]); })
      .Case([&](math::FloorOp) { return LLVM::FFloorOp::create(b, operands[0].getType(), operands[0]); })
      .Case([&](math::CeilOp) { return LLVM::FCeilOp::create(b, operands[0].getType(), operands[0]); })
      .Case([&](math::RoundEvenOp) { return LLVM::RoundEvenOp::create(b, operands[0].getType(), operands[0]); })
      .Default(Value());
}

LogicalResult ElementCloner::clone(Operation &op, IRMapping &mapping) {
  if (op.getNumResults() != 1 || op.getNumRegions() != 0)
    return op.emitOpError("cannot be lowered to the CPU");
  Value result = op.getResult(0);
  const bool hasIndex = llvm::any_of(op.getOperandTypes(), llvm::IsaPred<IndexType>) || result.getType().isIndex();
  if (hasIndex && shape == Shape::kVector)
    return op.emitOpError("cannot be lowered to the CPU: elements are i1, i32, i64, bf16, f16, f32 or f64");
  const bool hasF64 = isF64(result.getType()) || llvm::any_of(op.getOperandTypes(), isF64);
  if (hasF64 && !isLoweredForF64(op))
    return op.emitOpError("cannot be lowered to the CPU for f64");

  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    Type type = convert(constant.getType());
    if (auto value = dyn_cast<FloatAttr>(constant.getValue()))
      mapping.map(result, b.real(type, value.getValueAsDouble()));
    else if (auto value = dyn_cast<IntegerAttr>(constant.getValue()))
      mapping.map(result, b.integer(type, value.getInt()));
    else
      return op.emitOpError("cannot be lowered to the CPU: not a number");
    return success();
  }

  SmallVector<Value> operands;
  for (Value operand : op.getOperands())
    operands.push_back(lookup(operand, mapping));
  if (isa<arith::ExtFOp, arith::TruncFOp>(op) && !hasF64) {
    mapping.map(result, roundTo(operands[0], result.getType()));
    return success();
  }
  if (Value expanded = expand(op, operands)) {
    mapping.map(result, roundTo(expanded, result.getType()));
    return success();
  }
  // These have no copy: a remainder of floats would be a call of fmodf, and the bits of a small float are not the bits
  // that registers carry.
  const bool isBitcast =
      isa<arith::BitcastOp>(op) && (isSmallFloat(result.getType()) || isSmallFloat(op.getOperand(0).getType()));
  if (!isa<arith::ArithDialect>(op.getDialect()) || isa<arith::RemFOp>(op) || isBitcast)
    return op.emitOpError("cannot be lowered to the CPU");
  IRMapping operandMapping;
  operandMapping.map(op.getOperands(), operands);
  Operation *copy = b.clone(op, operandMapping);
  copy->getResult(0).setType(convert(result.getType()));
  mapping.map(result, roundTo(copy->getResult(0), result.getType()));
  return success();
}

} // namespace nsa::cpu
