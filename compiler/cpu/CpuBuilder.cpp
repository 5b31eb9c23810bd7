#include "compiler/cpu/CpuBuilder.h"

#include "mlir/IR/Matchers.h"

#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

namespace nsa::cpu {

using namespace mlir;

namespace {

TypedAttr splatAttribute(Type type, Attribute element) {
  if (auto vector = dyn_cast<VectorType>(type))
    return DenseElementsAttr::get(vector, element);
  return cast<TypedAttr>(element);
}

unsigned elementBytes(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isIntOrFloat() ? std::max(1u, element.getIntOrFloatBitWidth() / 8) : 8;
}

} // namespace

Value CpuBuilder::integer(Type type, int64_t value) {
  return arith::ConstantOp::create(*this, splatAttribute(type, getIntegerAttr(getElementTypeOrSelf(type), value)));
}

Value CpuBuilder::real(Type type, double value) {
  return arith::ConstantOp::create(*this, splatAttribute(type, getFloatAttr(getElementTypeOrSelf(type), value)));
}

Value CpuBuilder::laneNumbers() {
  auto numbers = llvm::to_vector(llvm::seq<int32_t>(0, int32_t(lanes)));
  return arith::ConstantOp::create(*this, getI32VectorAttr(numbers));
}

Value CpuBuilder::splat(Value scalar) { return vector::BroadcastOp::create(*this, vectorOf(scalar.getType()), scalar); }

Value CpuBuilder::at(Value pointer, Value index, Type element) {
  if (matchPattern(index, m_Zero()))
    return pointer;
  return LLVM::GEPOp::create(*this, pointerType(), element, pointer, ArrayRef<LLVM::GEPArg>{index},
                             LLVM::GEPNoWrapFlags::inbounds);
}

Value CpuBuilder::at(Value pointer, int64_t index, Type element) {
  if (index == 0)
    return pointer;
  if (!llvm::isInt<32>(index)) // a constant of GEPOp has 32 bits; a tile may be larger
    return at(pointer, i64(index), element);
  return LLVM::GEPOp::create(*this, pointerType(), element, pointer, ArrayRef<LLVM::GEPArg>{int32_t(index)},
                             LLVM::GEPNoWrapFlags::inbounds);
}

Value CpuBuilder::load(Type type, Value pointer, unsigned alignment) {
  return LLVM::LoadOp::create(*this, type, pointer, alignment ? alignment : elementBytes(type));
}

void CpuBuilder::store(Value value, Value pointer, unsigned alignment) {
  LLVM::StoreOp::create(*this, value, pointer, alignment ? alignment : elementBytes(value.getType()));
}

void CpuBuilder::loop(int64_t begin, int64_t end, int64_t step, llvm::function_ref<void(Value)> body) {
  loop(begin, end, step, ValueRange(), [&](Value i, ValueRange) {
    body(i);
    return SmallVector<Value>();
  });
}

SmallVector<Value> CpuBuilder::loop(int64_t begin, int64_t end, int64_t step, ValueRange carried,
                                    llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  if (end <= begin)
    return SmallVector<Value>(carried);
  if (end <= begin + step)
    return body(i64(begin), carried);
  auto loop = scf::ForOp::create(*this, i64(begin), i64(end), i64(step), carried);
  OpBuilder::InsertionGuard guard(*this);
  Block *block = loop.getBody();
  if (!block->empty())
    block->getTerminator()->erase();
  setInsertionPointToEnd(block);
  SmallVector<Value> next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  scf::YieldOp::create(*this, next);
  return SmallVector<Value>(loop.getResults());
}

void CpuBuilder::branch(Value condition, llvm::function_ref<void()> thenBody, llvm::function_ref<void()> elseBody) {
  auto branch = scf::IfOp::create(*this, condition, /*withElseRegion=*/bool(elseBody));
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(branch.thenBlock());
  thenBody();
  if (!elseBody)
    return;
  setInsertionPointToStart(branch.elseBlock());
  elseBody();
}

} // namespace nsa::cpu
