#include "compiler/cpu/TopLowering.h"

#include <limits>

namespace nsa::cpu {

using namespace mlir;

namespace {

// A rank is made of the bits of a score so that signed integers order as the scores do. The lowest integers do not
// occur as ranks of numbers: they stand for an empty slot (or the score -inf) and for NaN.
constexpr int64_t kAbsent = std::numeric_limits<int32_t>::min();
constexpr int64_t kNan = kAbsent + 1;
constexpr int64_t kNoColumn = -1;

} // namespace

TopLowering::TopLowering(CpuBuilder &b, func::FuncOp function, int64_t offset) : b(b), begin(offset), end(offset) {
  function.walk([&](tile::TopCreateOp op) {
    offsets[op.getLists()] = end;
    end += panels(op.getType()) * panelBytes(op.getType());
  });
}

Value TopLowering::placeOf(Value lists, Value scratch) { return b.at(scratch, offsets.at(lists)); }

Value TopLowering::loadVector(Type element, Value pointer) {
  return b.load(b.vectorOf(element), pointer, unsigned(vectorBytes()));
}

void TopLowering::storeVector(Value vector, Value pointer) { b.store(vector, pointer, unsigned(vectorBytes())); }

TopLowering::Offer TopLowering::loadSlot(Value slot) {
  return {loadVector(b.getI32Type(), slot), loadVector(b.getI32Type(), b.at(slot, vectorBytes()))};
}

Value TopLowering::isBetter(const Offer &x, const Offer &y) {
  auto compare = [&](arith::CmpIPredicate predicate, Value p, Value q) -> Value {
    return arith::CmpIOp::create(b, predicate, p, q);
  };
  Value isTie = compare(arith::CmpIPredicate::eq, x.rank, y.rank);
  Value isLower = compare(arith::CmpIPredicate::slt, x.column, y.column);
  return arith::OrIOp::create(b, compare(arith::CmpIPredicate::sgt, x.rank, y.rank),
                              arith::AndIOp::create(b, isTie, isLower));
}

Value TopLowering::isAny(Value mask) {
  Type bits = b.getIntegerType(unsigned(b.lanes));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, LLVM::BitcastOp::create(b, bits, mask), b.integer(bits, 0));
}

// The bits of negative floats order the other way round, so all bits but the sign are inverted. -0 becomes 0.
Value TopLowering::rankOf(Value scores) {
  const Type vector = b.vectorOf(b.getI32Type());
  auto choose = [&](Value condition, int64_t value, Value other) -> Value {
    return arith::SelectOp::create(b, condition, b.integer(vector, value), other);
  };
  auto compare = [&](arith::CmpFPredicate predicate, double bound) -> Value {
    return arith::CmpFOp::create(b, predicate, scores, b.real(scores.getType(), bound));
  };
  Value bits = LLVM::BitcastOp::create(b, vector, scores);
  Value sign = arith::ShRSIOp::create(b, bits, b.integer(vector, 31));
  Value turned = arith::AndIOp::create(b, sign, b.integer(vector, std::numeric_limits<int32_t>::max()));
  Value rank = arith::XOrIOp::create(b, bits, turned);
  rank = choose(compare(arith::CmpFPredicate::OEQ, 0.0), 0, rank);
  rank = choose(compare(arith::CmpFPredicate::OEQ, -std::numeric_limits<double>::infinity()), kAbsent, rank);
  return choose(compare(arith::CmpFPredicate::UNO, 0.0), kNan, rank);
}

void TopLowering::create(tile::TopCreateOp op, Value scratch) {
  const Type vector = b.vectorOf(b.getI32Type());
  const tile::TopType type = op.getType();
  b.walk(panels(type) * type.getSlots(), {{placeOf(op.getLists(), scratch), slotBytes()}}, [&](Value, ValueRange at) {
    storeVector(b.integer(vector, kAbsent), at[0]);
    storeVector(b.integer(vector, kNoColumn), b.at(at[0], vectorBytes()));
  });
}

// A score of -inf has the rank of an empty slot. It never replaces an empty slot, because its column is not lower.
void TopLowering::offer(const Offer &offered, Value panel, tile::TopType type) {
  b.walk(type.getSlots(), {{panel, slotBytes()}}, ValueRange{offered.rank, offered.column},
         [&](Value, ValueRange at, ValueRange carried) {
           const Offer hand = {carried[0], carried[1]}, slot = loadSlot(at[0]);
           Value enters = isBetter(hand, slot);
           auto choose = [&](Value yes, Value no) -> Value { return arith::SelectOp::create(b, enters, yes, no); };
           storeVector(choose(hand.rank, slot.rank), at[0]);
           storeVector(choose(hand.column, slot.column), b.at(at[0], vectorBytes()));
           return SmallVector<Value>{choose(slot.rank, hand.rank), choose(slot.column, hand.column)};
         });
}

void TopLowering::insert(tile::TopInsertOp op, Value scratch, const TileStorage &storage, Value scores, Value first) {
  const tile::TopType type = op.getLists().getType();
  const int64_t worst = (type.getSlots() - 1) * slotBytes();
  b.walk(panels(type), {{placeOf(op.getLists(), scratch), panelBytes(type)}, {scores, storage.panelWords() * 4}},
         [&](Value, ValueRange panelAt) {
           b.walk(storage.columns, {{panelAt[1], vectorBytes()}}, [&](Value column, ValueRange at) {
             Value number = b.add(first, b.createOrFold<arith::TruncIOp>(b.getI32Type(), column));
             const Offer offered = {rankOf(loadVector(b.getF32Type(), at[0])), b.splat(number)};
             Value enters = isBetter(offered, loadSlot(b.at(panelAt[0], worst)));
             b.branch(isAny(enters), [&] { offer(offered, panelAt[0], type); }, nullptr);
           });
         });
}

void TopLowering::next(tile::TopNextOp op, Value scratch, Value after, Value result) {
  const tile::TopType type = op.getLists().getType();
  b.walk(panels(type),
         {{placeOf(op.getLists(), scratch), panelBytes(type)}, {after, vectorBytes()}, {result, vectorBytes()}},
         [&](Value, ValueRange panelAt) {
           Value past = loadVector(b.getI32Type(), panelAt[1]);
           Value none = b.integer(past.getType(), std::numeric_limits<int32_t>::max());
           SmallVector<Value> lowest = b.walk(
               type.getSlots(), {{panelAt[0], slotBytes()}}, none, [&](Value, ValueRange at, ValueRange carried) {
                 Value column = loadSlot(at[0]).column;
                 Value isLater = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, column, past);
                 Value candidate = arith::SelectOp::create(b, isLater, column, none);
                 return SmallVector<Value>{arith::MinSIOp::create(b, carried[0], candidate)};
               });
           storeVector(lowest[0], panelAt[2]);
         });
}

} // namespace nsa::cpu
