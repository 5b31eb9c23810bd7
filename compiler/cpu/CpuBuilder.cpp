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

void CpuBuilder::begin(Block *block) {
  entry = block;
  setInsertionPointToEnd(block);
}

Value CpuBuilder::constant(TypedAttr value) {
  Value &known = constants[value];
  if (!known) {
    OpBuilder::InsertionGuard guard(*this);
    setInsertionPointToStart(entry);
    known = arith::ConstantOp::create(*this, value);
  }
  return known;
}

Value CpuBuilder::integer(Type type, int64_t value) {
  return constant(splatAttribute(type, getIntegerAttr(getElementTypeOrSelf(type), value)));
}

Value CpuBuilder::real(Type type, double value) {
  return constant(splatAttribute(type, getFloatAttr(getElementTypeOrSelf(type), value)));
}

Value CpuBuilder::laneNumbers() {
  return constant(getI32VectorAttr(llvm::to_vector(llvm::seq<int32_t>(0, int32_t(lanes)))));
}

Value CpuBuilder::splat(Value scalar) { return vector::BroadcastOp::create(*this, vectorOf(scalar.getType()), scalar); }

Value CpuBuilder::at(Value pointer, Value index, Type element) {
  if (matchPattern(index, m_Zero()))
    return pointer;
  return LLVM::GEPOp::create(*this, pointerType(), element, pointer, ArrayRef<LLVM::GEPArg>{index},
                             LLVM::GEPNoWrapFlags::inbounds);
}

Value CpuBuilder::at(Value pointer, int64_t bytes) {
  if (!llvm::isInt<32>(bytes)) // a constant of GEPOp has 32 bits; a tile may be larger
    return at(pointer, i64(bytes), getI8Type());
  if (bytes == 0)
    return pointer;
  return LLVM::GEPOp::create(*this, pointerType(), getI8Type(), pointer, ArrayRef<LLVM::GEPArg>{int32_t(bytes)},
                             LLVM::GEPNoWrapFlags::inbounds);
}

Value CpuBuilder::load(Type type, Value pointer, unsigned alignment) {
  return LLVM::LoadOp::create(*this, type, pointer, alignment ? alignment : elementBytes(type));
}

void CpuBuilder::store(Value value, Value pointer, unsigned alignment) {
  LLVM::StoreOp::create(*this, value, pointer, alignment ? alignment : elementBytes(value.getType()));
}

void CpuBuilder::walk(int64_t count, ArrayRef<Cursor> cursors, llvm::function_ref<void(Value, ValueRange)> body) {
  walk(count, cursors, ValueRange(), [&](Value i, ValueRange pointers, ValueRange) {
    body(i, pointers);
    return SmallVector<Value>();
  });
}

SmallVector<Value> CpuBuilder::walk(int64_t count, ArrayRef<Cursor> cursors, ValueRange carried,
                                    llvm::function_ref<SmallVector<Value>(Value, ValueRange, ValueRange)> body) {
  SmallVector<Value> initial;
  for (const Cursor &cursor : cursors)
    initial.push_back(cursor.start);
  if (count <= 0)
    return SmallVector<Value>(carried);
  if (count == 1)
    return body(i64(0), initial, carried);
  llvm::append_range(initial, carried);
  auto loop = scf::ForOp::create(*this, i64(0), i64(count), i64(1), initial);
  OpBuilder::InsertionGuard guard(*this);
  Block *block = loop.getBody();
  if (!block->empty())
    block->getTerminator()->erase();
  setInsertionPointToEnd(block);
  ValueRange arguments = loop.getRegionIterArgs(), results = loop.getResults();
  ValueRange pointers = arguments.take_front(cursors.size());
  SmallVector<Value> next = body(loop.getInductionVar(), pointers, arguments.drop_front(cursors.size()));
  SmallVector<Value> advanced;
  for (auto [pointer, cursor] : llvm::zip_equal(pointers, cursors))
    advanced.push_back(at(pointer, cursor.stride));
  llvm::append_range(advanced, next);
  scf::YieldOp::create(*this, advanced);
  return SmallVector<Value>(results.drop_front(cursors.size()));
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
