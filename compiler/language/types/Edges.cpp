#include "compiler/language/types/Edges.h"

namespace nsa::language {

namespace {

void collectConjuncts(Value *predicate, std::vector<Value *> &result) {
  if (predicate->op == Op::kAnd && predicate->size <= kMostFormulaSize) {
    collectConjuncts(predicate->operands[0], result);
    collectConjuncts(predicate->operands[1], result);
  } else if (!isConstant(predicate, 1)) {
    result.push_back(predicate);
  }
}

} // namespace

std::vector<Value *> conjunctsOf(Value *predicate) {
  std::vector<Value *> result;
  collectConjuncts(predicate, result);
  return result;
}

Edge Edges::always(const Value *unknown) {
  return {builder.constant(Constant::ofBool(true), Element::kBool, unknown->range), unknown};
}

Edge Edges::canFail(Value *condition, AxisSet full) {
  if (!condition->axes && condition->form != Form::kTile)
    return {builder.negated(condition), nullptr};
  if (condition->form == Form::kTile)
    return always(condition);
  const auto join = [&](Op op, Edge left, Edge right) -> Edge {
    return {builder.elementwise(op, Element::kBool, {left.condition, right.condition}, condition->range),
            left.unknown ? left.unknown : right.unknown};
  };
  // The least of left - right, or the greatest of it negated.
  const auto compared = [&](size_t greater, bool orEqual) {
    Sum sum;
    sum.add(condition->operands[greater], 1, builder.block()->depth);
    sum.add(condition->operands[1 - greater], -1, builder.block()->depth);
    Edge edge = canBeBelow(sum, orEqual, full, condition->range);
    return edge.condition ? edge : always(condition);
  };
  switch (condition->op) {
  case Op::kOr:
    return join(Op::kAnd, canFail(condition->operands[0], full), canFail(condition->operands[1], full));
  case Op::kAnd:
    return join(Op::kOr, canFail(condition->operands[0], full), canFail(condition->operands[1], full));
  case Op::kGreaterEqual: // fails where left - right < 0
    return compared(0, false);
  case Op::kGreater:
    return compared(0, true);
  case Op::kLessEqual:
    return compared(1, false);
  case Op::kLess:
    return compared(1, true);
  case Op::kInRange: {
    Value *zero = builder.constant(Constant::ofInteger(0), Element::kI32, condition->range);
    Value *isBegun =
        builder.elementwise(Op::kGreaterEqual, Element::kBool, {condition->operands[0], zero}, condition->range);
    return join(Op::kOr, canFail(isBegun, full),
                canFail({nullptr, condition->operands[0], condition->operands[1]}, full));
  }
  default:
    return always(condition);
  }
}

Edge Edges::canFail(const Presence &presence, AxisSet full) {
  return canFail(
      builder.elementwise(Op::kLess, Element::kBool, {presence.index, presence.bound}, presence.index->range), full);
}

Edge Edges::canBeBelow(const Sum &sum, bool orEqual, AxisSet full, const SourceRange &range) {
  // Each term at the corner where the sum is least, if there is one: along each axis all terms go the same way.
  AxisSet grows = 0, falls = 0;
  for (const auto &[term, factor] : sum.terms)
    for (uint8_t number = 0; number < kMostAxes; ++number) {
      if (!(term->axes & (AxisSet{1} << number)))
        continue;
      const std::optional<int> direction = directionOf(term, builder.axis(number));
      if (!direction)
        return {};
      (*direction * factor > 0 ? grows : falls) |= *direction ? AxisSet{1} << number : 0;
    }
  if (grows & falls)
    return {};
  Sum least;
  least.number = sum.number;
  for (const auto &[term, factor] : sum.terms) {
    Value *end = ends.end(term, factor < 0, full);
    if (!end)
      return {};
    least.add(end, factor, kMostDepth);
  }
  const auto number = [&](int64_t value) { return builder.constant(Constant::ofInteger(value), Element::kI32, range); };
  const auto plus = [&](Value *left, Value *right) {
    return left ? builder.elementwise(Op::kAdd, Element::kI32, {left, right}, range) : right;
  };
  // The index of the innermost loop stands alone on its side, with the number.
  Value *index = nullptr;
  int64_t indexFactor = 0;
  for (const auto &[term, factor] : least.terms)
    if (term->op == Op::kIndex && (factor == 1 || factor == -1) && (!index || term->depth > index->depth)) {
      index = term;
      indexFactor = factor;
    }
  Value *positive = nullptr, *negative = nullptr;
  for (const auto &[term, factor] : least.terms) {
    if (term == index)
      continue;
    const int64_t size = factor < 0 ? -factor : factor;
    Value *scaled = size == 1 ? term : builder.elementwise(Op::kMultiply, Element::kI32, {term, number(size)}, range);
    // On the side without the index, what has the other sign is subtracted below.
    Value *&side = factor > 0 ? positive : negative;
    side = plus(side, scaled);
  }
  if (index) {
    // index + n < rest, or rest < index + n
    const bool indexIsPositive = indexFactor > 0;
    Value *added = indexIsPositive ? negative : positive, *taken = indexIsPositive ? positive : negative;
    Value *rest = added ? added : number(0);
    if (taken)
      rest = builder.elementwise(Op::kSubtract, Element::kI32, {rest, taken}, range);
    const int64_t offset = indexIsPositive ? least.number : -least.number;
    Value *left = offset < 0 ? index : plus(index, number(offset));
    if (offset < 0)
      rest = plus(rest, number(-offset));
    const Op op = indexIsPositive ? (orEqual ? Op::kLessEqual : Op::kLess) : orEqual ? Op::kGreaterEqual : Op::kGreater;
    return {builder.elementwise(op, Element::kBool, {left, rest}, range), nullptr};
  }
  // positive + n < negative, or where one side is a number: negative > n
  if (!positive && !negative)
    return {builder.constant(Constant::ofBool(orEqual ? least.number <= 0 : least.number < 0), Element::kBool, range),
            nullptr};
  if (!negative) // positive < -n
    return {builder.elementwise(Op::kLess, Element::kBool, {positive, number(-least.number + orEqual)}, range),
            nullptr};
  if (!positive) // negative > n
    return {builder.elementwise(Op::kGreater, Element::kBool, {negative, number(least.number - orEqual)}, range),
            nullptr};
  if (least.number > 0)
    positive = plus(positive, number(least.number));
  else if (least.number < 0)
    negative = plus(negative, number(-least.number));
  return {builder.elementwise(orEqual ? Op::kGreaterEqual : Op::kGreater, Element::kBool, {negative, positive}, range),
          nullptr};
}

} // namespace nsa::language
