#include "compiler/language/types/Ends.h"

#include <algorithm>

namespace nsa::language {

namespace {

std::optional<int> joined(std::optional<int> left, std::optional<int> right) {
  if (!left || !right)
    return std::nullopt;
  if (*left == 0 || *left == *right)
    return right;
  return *right == 0 ? left : std::nullopt;
}

std::optional<int> turned(std::optional<int> direction) {
  return direction ? std::optional(-*direction) : std::nullopt;
}

// The sign of a constant; nothing: it is none.
std::optional<int> signOf(const Value *value) {
  return isConstant(value) ? std::optional(value->number.integer >= 0 ? 1 : -1) : std::nullopt;
}

} // namespace

std::optional<int> directionOf(const Value *formula, const Axis *axis) {
  if (!(formula->axes & axis->bit()))
    return 0;
  const auto operand = [&](size_t number) { return directionOf(formula->operands[number], axis); };
  switch (formula->op) {
  case Op::kIota:
    return 1;
  case Op::kAdd:
  case Op::kMin:
  case Op::kMax:
    return joined(operand(0), operand(1));
  case Op::kSubtract:
    return joined(operand(0), turned(operand(1)));
  case Op::kMultiply:
  case Op::kDivide: {
    if (const std::optional<int> sign = signOf(formula->operands[1]))
      return *sign > 0 ? operand(0) : turned(operand(0));
    const std::optional<int> sign = signOf(formula->operands[0]);
    if (!sign || formula->op == Op::kDivide)
      return std::nullopt;
    return *sign > 0 ? operand(1) : turned(operand(1));
  }
  case Op::kNegate:
    return turned(operand(0));
  case Op::kSelect:
    return formula->operands[0]->axes ? std::nullopt : joined(operand(1), operand(2));
  case Op::kBelow:
  case Op::kWiden:
    return operand(0);
  default:
    return std::nullopt;
  }
}

void Sum::addTerm(Value *value, int64_t factor) {
  const auto found = std::ranges::find(terms, value, &std::pair<Value *, int64_t>::first);
  if (found == terms.end())
    terms.emplace_back(value, factor);
  else if ((found->second += factor) == 0)
    terms.erase(found);
}

void Sum::add(Value *value, int64_t factor, uint32_t outside) {
  if (isConstant(value)) {
    number += factor * value->number.integer;
    return;
  }
  const bool isTerm = outside != 0 && (value->form == Form::kScalar || (value->ends && value->depth < outside));
  if (isTerm || value->size > kMostFormulaSize) {
    addTerm(value, factor);
    return;
  }
  switch (value->op) {
  case Op::kAdd:
  case Op::kSubtract:
    add(value->operands[0], factor, outside);
    add(value->operands[1], value->op == Op::kAdd ? factor : -factor, outside);
    return;
  case Op::kNegate:
    add(value->operands[0], -factor, outside);
    return;
  case Op::kMultiply:
    for (size_t i = 0; i < 2; ++i)
      if (isConstant(value->operands[i])) {
        add(value->operands[1 - i], factor * value->operands[i]->number.integer, outside);
        return;
      }
    break;
  case Op::kBelow:
  case Op::kWiden:
    add(value->operands[0], factor, outside);
    return;
  default:
    break;
  }
  addTerm(value, factor);
}

void Ends::anchor(Value *formula) {
  if (formula->ends || formula->element != Element::kI32)
    return;
  Value *anchor = builder.make(Op::kEnds, Form::kStatement, Element::kNone, 0, {formula}, formula->range);
  anchor->block = builder.newBody();
  anchor->block->depth = builder.block()->depth;
  formula->ends = anchor;
}

Value *Ends::end(Value *formula, bool high, AxisSet full) {
  if (!formula->axes)
    return formula;
  if (full & formula->axes)
    return computed(formula, high, full);
  Known &ends = known[formula];
  Value *&result = high ? ends.high : ends.low;
  if (result)
    return result;
  Value *value = nullptr;
  if (formula->ends) {
    ValueBuilder::Inside inside(builder, formula->ends->block);
    value = computed(formula, high, full);
    if (value && value->name.empty() && !isConstant(value))
      value->name = builder.keepText(std::string(formula->name) + (high ? "_high" : "_low"));
    result = value;
  } else {
    value = computed(formula, high, full); // which may be of no use in other blocks
  }
  if (value && high)
    highOf.emplace(value, formula);
  return value;
}

Value *Ends::computed(Value *formula, bool high, AxisSet full) {
  const SourceRange &range = formula->range;
  const auto operand = [&](size_t number, bool which) -> Value * {
    return end(formula->operands[number], which, full);
  };
  const auto both = [&](Op op, Value *left, Value *right) -> Value * {
    return left && right ? builder.elementwise(op, Element::kI32, {left, right}, range) : nullptr;
  };
  const auto number = [&](int64_t value) { return builder.constant(Constant::ofInteger(value), Element::kI32, range); };
  switch (formula->op) {
  case Op::kIota:
    return number(high ? formula->axis->count - 1 : 0);
  case Op::kBelow: {
    if ((formula->operands[0]->axes & ~full) == 0)
      return operand(0, high);
    // Elements exist from the first one on, one after the other, so the last one that exists stands below the bound.
    Sum sum;
    sum.add(formula->operands[0], 1);
    for (const auto &[term, factor] : sum.terms)
      if (term->axes && (term->op != Op::kIota || factor != 1))
        return nullptr;
    if (!high)
      return operand(0, false);
    Value *past = both(Op::kMin, both(Op::kAdd, operand(0, true), number(1)), formula->operands[1]);
    return both(Op::kSubtract, past, number(1));
  }
  case Op::kAdd:
  case Op::kMin:
  case Op::kMax:
    return both(formula->op, operand(0, high), operand(1, high));
  case Op::kSubtract:
    return both(Op::kSubtract, operand(0, high), operand(1, !high));
  case Op::kMultiply:
  case Op::kDivide: {
    const size_t factor = isConstant(formula->operands[1]) ? 1 : 0;
    const bool turns = formula->operands[factor]->number.integer < 0;
    Value *moving = operand(1 - factor, high != turns);
    return factor == 1 ? both(formula->op, moving, formula->operands[1])
                       : both(formula->op, formula->operands[0], moving);
  }
  case Op::kNegate: {
    Value *value = operand(0, !high);
    return value ? builder.elementwise(Op::kNegate, Element::kI32, {value}, range) : nullptr;
  }
  case Op::kSelect: {
    Value *ifTrue = operand(1, high), *ifFalse = operand(2, high);
    return ifTrue && ifFalse
               ? builder.elementwise(Op::kSelect, Element::kI32, {formula->operands[0], ifTrue, ifFalse}, range)
               : nullptr;
  }
  case Op::kWiden:
    return operand(0, high);
  default:
    return nullptr;
  }
}

bool Ends::implies(const Value *condition, const Presence &presence) const {
  if (!isComparison(condition->op) || condition->op == Op::kEqual || condition->op == Op::kUnequal ||
      condition->operands[0]->element != Element::kI32)
    return false;
  // bound = high(x) + offset
  Value *end = presence.bound;
  int64_t offset = 0;
  if (end->op == Op::kAdd && isConstant(end->operands[1])) {
    offset = end->operands[1]->number.integer;
    end = end->operands[0];
  }
  const auto found = highOf.find(end);
  if (found == highOf.end() || offset < 1)
    return false;
  // The condition as left <= 0 or left < 0, and index - x.
  const bool isLess = condition->op == Op::kLess || condition->op == Op::kLessEqual;
  const bool isStrict = condition->op == Op::kLess || condition->op == Op::kGreater;
  Sum left, right;
  left.add(condition->operands[isLess ? 0 : 1], 1);
  left.add(condition->operands[isLess ? 1 : 0], -1);
  right.add(presence.index, 1);
  right.add(found->second, -1);
  const auto sorted = [](Sum &sum) { std::ranges::sort(sum.terms); };
  sorted(left);
  sorted(right);
  return left.terms == right.terms && left.number + isStrict - right.number >= 0;
}

} // namespace nsa::language
