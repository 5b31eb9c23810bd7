#include "compiler/language/types/Values.h"

#include <algorithm>
#include <limits>

namespace nsa::language {

std::string_view nameOf(Element element) {
  static constexpr std::string_view kNames[] = {"nothing", "bool", "i32",  "i64", "f32",     "f64",
                                                "io",      "bf16", "fp16", "io",  "gradient"};
  return kNames[static_cast<size_t>(element)];
}

std::vector<const Axis *> Program::listOf(AxisSet set) const {
  std::vector<const Axis *> result;
  for (const Axis &axis : axes)
    if (set & axis.bit())
      result.push_back(&axis);
  return result;
}

std::string Program::axesText(AxisSet set) const {
  std::string text = "[";
  for (const Axis *axis : listOf(set))
    text += (text.size() > 1 ? ", " : "") + std::string(axis->name);
  return text + "]";
}

std::string Program::typeText(const Value &value) const {
  const std::string element(nameOf(value.element));
  return value.form == Form::kScalar ? element : element + axesText(value.axes);
}

namespace {

// The axes along which what does not exist in the result is 0, from those of the operands.
AxisSet zeroOf(Op op, std::span<Value *const> operands) {
  const auto zero = [&](size_t number) { return operands[number]->zero; };
  switch (op) {
  case Op::kAdd:
  case Op::kSubtract:
  case Op::kMin:
  case Op::kMax:
    return zero(0) & zero(1);
  case Op::kMultiply:
    return zero(0) | zero(1);
  case Op::kDivide:
  case Op::kNegate:
  case Op::kErf:
  case Op::kAbs:
  case Op::kCast:
  case Op::kSqrt:
  case Op::kRoundEven:
  case Op::kWiden:
    return zero(0);
  case Op::kSelect:
    return zero(1) & zero(2);
  case Op::kFma:
    return (zero(0) | zero(1)) & zero(2);
  default:
    return 0;
  }
}

std::optional<BinaryOp> foldedBy(Op op) {
  switch (op) {
  case Op::kAdd:
    return BinaryOp::kAdd;
  case Op::kSubtract:
    return BinaryOp::kSubtract;
  case Op::kMultiply:
    return BinaryOp::kMultiply;
  case Op::kDivide:
    return BinaryOp::kDivide;
  case Op::kRemainder:
    return BinaryOp::kRemainder;
  default:
    return std::nullopt;
  }
}

// Whether a kernel computes with this number as it stands here. A number of another type may be rounded.
bool isFoldable(const Value *value) { return isConstant(value) && value->element == Element::kI32; }

BinaryOp comparedBy(Op comparison) {
  switch (comparison) {
  case Op::kEqual:
    return BinaryOp::kEqual;
  case Op::kUnequal:
    return BinaryOp::kUnequal;
  case Op::kLess:
    return BinaryOp::kLess;
  case Op::kLessEqual:
    return BinaryOp::kLessEqual;
  case Op::kGreater:
    return BinaryOp::kGreater;
  default:
    return BinaryOp::kGreaterEqual;
  }
}

Op inverseOf(Op comparison) {
  switch (comparison) {
  case Op::kEqual:
    return Op::kUnequal;
  case Op::kUnequal:
    return Op::kEqual;
  case Op::kLess:
    return Op::kGreaterEqual;
  case Op::kLessEqual:
    return Op::kGreater;
  case Op::kGreater:
    return Op::kLessEqual;
  default:
    return Op::kLess;
  }
}

} // namespace

namespace {

uint32_t sizeOf(Form form, std::span<Value *const> operands) {
  uint32_t size = 1;
  for (const Value *operand : operands)
    if (operand && size <= kMostFormulaSize)
      size += form == Form::kFormula && operand->form == Form::kScalar ? 1 : operand->size;
  return size;
}

} // namespace

bool isSame(const Value *left, const Value *right) {
  // What exists of an index, and along which axes it is looked at, does not change it.
  while (left->op == Op::kBelow || (left->op == Op::kWiden && left->form != Form::kTile))
    left = left->operands[0];
  while (right->op == Op::kBelow || (right->op == Op::kWiden && right->form != Form::kTile))
    right = right->operands[0];
  if (left == right)
    return true;
  if (left->op != right->op || left->element != right->element)
    return false;
  if (left->op == Op::kConstant)
    return left->number == right->number;
  if (left->op == Op::kIota)
    return left->axis == right->axis;
  return isElementwise(left->op) && left->size == right->size && left->size <= kMostFormulaSize &&
         std::ranges::equal(left->operands, right->operands, isSame);
}

bool isAtMost(const Value *number, const Value *limit) {
  if (isSame(number, limit))
    return true;
  if (number->size > kMostFormulaSize)
    return false;
  if (isConstant(number) && isConstant(limit))
    return number->number.integer <= limit->number.integer;
  const auto isIt = [&](const Value *operand) { return isAtMost(operand, limit); };
  if (number->op == Op::kMin)
    return std::ranges::any_of(number->operands, isIt);
  return number->op == Op::kSelect && std::ranges::all_of(number->operands.subspan(1), isIt);
}

Body *ValueBuilder::newBody() {
  Body &block = program.blocks.emplace_back();
  block.depth = current ? current->depth + 1 : 0;
  return &block;
}

Value *ValueBuilder::make(Op op, Form form, Element element, AxisSet axes, std::initializer_list<Value *> operands,
                          const SourceRange &range) {
  Value *value = program.arena.make<Value>();
  value->order = program.valueCount++;
  value->op = op;
  value->form = form;
  value->element = element;
  value->axes = axes;
  value->operands = list(std::span<Value *const>(operands.begin(), operands.size()));
  value->range = range;
  value->size = sizeOf(form, value->operands);
  for (const Value *operand : operands)
    value->parts |= operand->parts;
  if (form == Form::kFormula) {
    for (const Value *operand : operands)
      value->depth = std::max(value->depth, operand->depth);
  } else {
    value->depth = current->depth;
    current->values.push_back(value);
  }
  return value;
}

bool isPositive(const Value *size) {
  if (isConstant(size))
    return size->number.integer > 0;
  if (size->size > kMostFormulaSize)
    return false;
  if (size->op == Op::kSelect)
    return isPositive(size->operands[1]) && isPositive(size->operands[2]);
  if (size->op == Op::kMax)
    return std::ranges::any_of(size->operands, isPositive);
  if (size->op != Op::kDivide || !isConstant(size->operands[1]) || size->operands[0]->op != Op::kAdd)
    return false;
  const Value *sum = size->operands[0], *divisor = size->operands[1], *addend = sum->operands[1];
  return divisor->number.integer > 0 && isConstant(addend) && addend->number.integer == divisor->number.integer - 1 &&
         isPositive(sum->operands[0]);
}

// Whether the side of a choice is a difference that the choice has compared: a - b in a < b ? .. : a - b.
static bool isComparedDifference(const Value *choice, size_t side) {
  const Value *condition = choice->operands[0], *difference = choice->operands[side];
  return condition->op == (side == 1 ? Op::kGreaterEqual : Op::kLess) && difference->op == Op::kSubtract &&
         isSame(condition->operands[0], difference->operands[0]) &&
         isSame(condition->operands[1], difference->operands[1]);
}

bool isNonNegative(const Value *number) {
  if (number->size > kMostFormulaSize)
    return false;
  switch (number->op) {
  case Op::kConstant:
    return number->number.integer >= 0;
  case Op::kProgramId:
    return true;
  case Op::kIndex:
    return isNonNegative(number->loop->low);
  case Op::kBelow:
  case Op::kChunk:
  case Op::kWiden:
    return isNonNegative(number->operands[0]);
  case Op::kAdd:
  case Op::kMultiply:
  case Op::kMin:
    return std::ranges::all_of(number->operands, isNonNegative);
  case Op::kMax:
    return std::ranges::any_of(number->operands, isNonNegative);
  case Op::kDivide:
  case Op::kRemainder:
    return isNonNegative(number->operands[0]) && isPositive(number->operands[1]);
  case Op::kSelect:
    return (isComparedDifference(number, 1) || isNonNegative(number->operands[1])) &&
           (isComparedDifference(number, 2) || isNonNegative(number->operands[2]));
  default:
    return false;
  }
}

Value *ValueBuilder::constant(const Constant &number, Element element, const SourceRange &range) {
  Value *value = program.arena.make<Value>();
  value->op = Op::kConstant;
  value->form = Form::kScalar;
  value->element = element;
  value->range = range;
  value->number = number;
  value->zero = number.real == 0 ? kAllAxes : 0;
  return value;
}

Value *ValueBuilder::iota(const Axis *axis, const SourceRange &range) {
  Value *value = make(Op::kIota, Form::kFormula, Element::kI32, axis->bit(), {}, range);
  value->axis = axis;
  return value;
}

Value *ValueBuilder::folded(Op op, Element element, std::span<Value *const> operands, const SourceRange &range) {
  const auto bothBool = [&] { return op == Op::kAnd || op == Op::kOr; };
  if (element == Element::kI32 && operands.size() == 2) {
    Value *left = operands[0], *right = operands[1];
    if (const std::optional<BinaryOp> binary = foldedBy(op); binary && isConstant(left) && isConstant(right))
      if (const std::optional<Constant> result = foldConstants(*binary, left->number, right->number);
          result && result->integer == static_cast<int32_t>(result->integer))
        return constant(*result, element, range);
    if ((op == Op::kAdd || op == Op::kSubtract) && isConstant(right, 0))
      return left;
    // (x + a) - b, where the sum has no name
    const bool isSum = (left->op == Op::kAdd || left->op == Op::kSubtract) && left->name.empty();
    if ((op == Op::kAdd || op == Op::kSubtract) && isConstant(right) && isSum && isConstant(left->operands[1])) {
      const int64_t inner = left->operands[1]->number.integer, outer = right->number.integer;
      const int64_t sum = (left->op == Op::kAdd ? inner : -inner) + (op == Op::kAdd ? outer : -outer);
      if (sum == static_cast<int32_t>(sum) && sum != std::numeric_limits<int32_t>::min())
        return elementwise(sum < 0 ? Op::kSubtract : Op::kAdd, element,
                           {left->operands[0], constant(Constant::ofInteger(sum < 0 ? -sum : sum), element, range)},
                           range);
    }
    if (op == Op::kAdd && isConstant(left, 0))
      return right;
    if ((op == Op::kMultiply || op == Op::kDivide) && isConstant(right, 1))
      return left;
    if (op == Op::kMultiply && isConstant(left, 1))
      return right;
  } else if (isComparison(op) && isFoldable(operands[0]) && isFoldable(operands[1])) {
    return constant(*foldConstants(comparedBy(op), operands[0]->number, operands[1]->number), element, range);
  } else if (op == Op::kSelect && isConstant(operands[1]) && isSame(operands[1], operands[2])) {
    return operands[1];
  } else if (bothBool()) {
    for (size_t i = 0; i < 2; ++i)
      if (isConstant(operands[i]))
        return operands[i]->number.isTrue() == (op == Op::kAnd) ? operands[1 - i] : operands[i];
  }
  return nullptr;
}

Value *ValueBuilder::elementwise(Op op, Element element, std::span<Value *const> operands, const SourceRange &range) {
  if (Value *known = folded(op, element, operands, range))
    return known;
  Form form = Form::kScalar;
  AxisSet axes = 0;
  for (const Value *operand : operands) {
    axes |= operand->axes;
    if (operand->form == Form::kTile || (operand->form == Form::kFormula && form != Form::kTile))
      form = operand->form;
  }
  // A formula is of i32 or bool.
  if (form == Form::kFormula && element != Element::kI32 && element != Element::kBool)
    form = Form::kTile;
  Value *value = make(op, form, element, axes, {}, range);
  value->operands = list(operands);
  value->size = sizeOf(form, operands);
  for (const Value *operand : operands) {
    value->presence = united(value->presence, operand->presence);
    value->taints = united(value->taints, operand->taints);
    value->parts |= operand->parts;
    if (form == Form::kFormula)
      value->depth = std::max(value->depth, operand->depth);
  }
  if (form == Form::kTile)
    value->zero = zeroOf(op, operands);
  return value;
}

Value *ValueBuilder::widened(Value *value, AxisSet axes, Form form) {
  if ((value->axes | axes) == value->axes && value->form == form)
    return value;
  Value *wide = make(Op::kWiden, form, value->element, value->axes | axes, {value}, value->range);
  wide->presence = value->presence;
  wide->taints = value->taints;
  wide->zero = value->zero;
  return wide;
}

Value *ValueBuilder::negated(Value *condition) {
  if (isConstant(condition))
    return constant(Constant::ofBool(!condition->number.isTrue()), Element::kBool, condition->range);
  const bool ofIntegers = isComparison(condition->op) && !isFloat(condition->operands[0]->element);
  if (ofIntegers && condition->form == Form::kScalar)
    return elementwise(inverseOf(condition->op), Element::kBool, condition->operands, condition->range);
  if (condition->op == Op::kNot)
    return condition->operands[0];
  const bool isLogical = condition->op == Op::kAnd || condition->op == Op::kOr;
  if (isLogical && condition->form == Form::kScalar && condition->size <= kMostFormulaSize)
    return elementwise(condition->op == Op::kAnd ? Op::kOr : Op::kAnd, Element::kBool,
                       {negated(condition->operands[0]), negated(condition->operands[1])}, condition->range);
  return elementwise(Op::kNot, Element::kBool, {condition}, condition->range);
}

Value *ValueBuilder::substituted(Value *formula, const Axis *axis, Value *by) {
  if (!(formula->axes & axis->bit()))
    return formula;
  if (formula->op == Op::kIota)
    return by;
  std::vector<Value *> operands;
  for (Value *operand : formula->operands)
    operands.push_back(substituted(operand, axis, by));
  Value *result = nullptr;
  if (formula->op == Op::kBelow) {
    result = operands[0];
  } else if (formula->op == Op::kLoad) {
    std::vector<Value *> coordinates;
    for (Value *coordinate : formula->access->coordinates)
      coordinates.push_back(substituted(coordinate, axis, by));
    auto *access = program.arena.make<Access>(*formula->access);
    access->coordinates = list(coordinates);
    if (access->rowAxis == axis)
      access->rowAxis = nullptr;
    const AxisSet axes = formula->axes & ~axis->bit();
    result = make(Op::kLoad, axes ? Form::kFormula : Form::kScalar, formula->element, axes, {}, formula->range);
    result->access = access;
    for (const Value *coordinate : coordinates) {
      result->depth = std::max(result->depth, coordinate->depth);
      result->parts |= coordinate->parts;
    }
  } else if (formula->op == Op::kWiden) {
    const AxisSet axes = formula->axes & ~axis->bit();
    result = axes ? widened(operands[0], axes, Form::kFormula) : operands[0];
  } else {
    result = elementwise(formula->op, formula->element, operands, formula->range);
  }
  // What exists along the axis is now a condition on the value itself; along other axes it stays what it was.
  std::vector<Presence> presence;
  for (const Presence &known : formula->presence)
    presence.push_back({known.axis, substituted(known.index, axis, by), substituted(known.bound, axis, by)});
  if (!presence.empty() && !isConstant(result)) {
    // The value may be shared with others, for which this does not hold.
    Value *copy = program.arena.make<Value>(*result);
    copy->presence = program.arena.copy(presence);
    if (result->form == Form::kScalar) {
      copy->op = Op::kWiden;
      copy->operands = list(std::span<Value *const>(&result, 1));
      current->values.push_back(copy);
      copy->depth = current->depth;
    }
    result = copy;
  }
  return result;
}

std::span<const Presence> ValueBuilder::united(std::span<const Presence> left, std::span<const Presence> right) {
  if (right.empty())
    return left;
  if (left.empty())
    return right;
  std::vector<Presence> result(left.begin(), left.end());
  for (const Presence &presence : right)
    if (std::ranges::find(result, presence) == result.end())
      result.push_back(presence);
  return result.size() == left.size() ? left : program.arena.copy(result);
}

std::span<const Taint> ValueBuilder::united(std::span<const Taint> left, std::span<const Taint> right) {
  if (right.empty())
    return left;
  if (left.empty())
    return right;
  std::vector<Taint> result(left.begin(), left.end());
  for (const Taint &taint : right)
    if (std::ranges::find(result, taint) == result.end())
      result.push_back(taint);
  return result.size() == left.size() ? left : program.arena.copy(result);
}

std::span<const Presence> ValueBuilder::leaving(std::span<const Presence> presence, uint32_t depth) {
  std::vector<Presence> result;
  for (const Presence &known : presence)
    if (known.index->depth <= depth && known.bound->depth <= depth)
      result.push_back(known);
  return result.size() == presence.size() ? presence : program.arena.copy(result);
}

// Where the edge is not known, every product annihilates.
std::span<const Taint> ValueBuilder::leaving(std::span<const Taint> taints, uint32_t depth) {
  std::vector<Taint> result;
  AxisSet always = 0;
  Value *alwaysEdge = nullptr;
  for (const Taint &taint : taints) {
    if (taint.edge->depth <= depth && !isConstant(taint.edge)) {
      result.push_back(taint);
      continue;
    }
    always |= taint.axes;
    if (isConstant(taint.edge))
      alwaysEdge = taint.edge;
    else if (!alwaysEdge)
      alwaysEdge = constant(Constant::ofBool(true), Element::kBool, taint.edge->range);
  }
  if (!alwaysEdge)
    return taints;
  result.push_back({always, alwaysEdge});
  return program.arena.copy(result);
}

} // namespace nsa::language
