// Columns of rows: where they begin, and where they end.
#include "compiler/language/types/Elaborator.h"

#include <algorithm>

namespace nsa::language {

namespace {

// Whether columns below the bound are columns of the tensor. A bound is chosen as its tensor is.
bool isInRow(const Value *bound, const Value *tensor) {
  if (tensor->op == Op::kSelect) {
    const bool isAlike = bound->op == Op::kSelect && isSame(bound->operands[0], tensor->operands[0]);
    return isInRow(isAlike ? bound->operands[1] : bound, tensor->operands[1]) &&
           isInRow(isAlike ? bound->operands[2] : bound, tensor->operands[2]);
  }
  Value columns{};
  columns.op = Op::kConstant;
  columns.element = Element::kI32;
  columns.number = Constant::ofInteger(tensor->tensor->columns);
  return isAtMost(bound, &columns);
}

} // namespace

// A quotient that is known to have no remainder. nullptr: it may have one.
Value *Elaborator::dividedExactly(Value *value, int64_t divisor, const SourceRange &range) {
  const auto number = [&](int64_t integer) {
    return builder.constant(Constant::ofInteger(integer), Element::kI32, range);
  };
  if (isConstant(value))
    return value->number.integer % divisor == 0 ? number(value->number.integer / divisor) : nullptr;
  switch (value->op) {
  case Op::kMultiply:
    for (size_t i = 0; i < 2; ++i)
      if (isConstant(value->operands[i]) && value->operands[i]->number.integer % divisor == 0)
        return builder.elementwise(Op::kMultiply, Element::kI32,
                                   {value->operands[1 - i], number(value->operands[i]->number.integer / divisor)},
                                   range);
    return nullptr;
  case Op::kAdd:
  case Op::kSubtract: {
    Value *left = dividedExactly(value->operands[0], divisor, range);
    Value *right = left ? dividedExactly(value->operands[1], divisor, range) : nullptr;
    return right ? builder.elementwise(value->op, Element::kI32, {left, right}, range) : nullptr;
  }
  case Op::kIndex: {
    Loop &loop = *value->loop;
    if (!isConstant(loop.low) || loop.low->number.integer % divisor != 0 || loop.step % divisor != 0)
      return nullptr;
    // A loop from 0 by tiles of columns counts them: no division is left.
    if (isConstant(loop.low, 0) && loop.step == divisor) {
      loop.isByChunk = true;
      Value *chunk = builder.make(Op::kChunk, Form::kScalar, Element::kI32, 0, {value}, range);
      chunk->name = builder.keepText(std::string(value->name) + "_chunk");
      return chunk;
    }
    return builder.elementwise(Op::kDivide, Element::kI32, {value, number(divisor)}, range);
  }
  default:
    return nullptr;
  }
}

Value *Elaborator::columnCount(const Value *tensor, const SourceRange &range) {
  if (tensor->op != Op::kSelect)
    return builder.constant(Constant::ofInteger(tensor->tensor->columns), Element::kI32, range);
  Value *left = columnCount(tensor->operands[1], range), *right = columnCount(tensor->operands[2], range);
  return isSame(left, right)
             ? left
             : builder.elementwise(Op::kSelect, Element::kI32, {tensor->operands[0], left, right}, range);
}

// The columns of a row end where the index says so, and where the row does. Both are said of what is loaded.
Value *Elaborator::columnBoundOf(const Address &address, const Axis *axis, Value *first,
                                 std::span<const Presence> &presence) {
  Value *column = address.column.value, *bound = nullptr;
  for (const Presence &known : column->presence) {
    Value *own = known.bound;
    if (known.axis != axis)
      continue;
    if (!isSame(known.index, column)) {
      Value *place = firstOf(known.index, axis, address.range);
      if (!place)
        continue; // it counts in another way, and bounds no column
      own = builder.elementwise(Op::kAdd, Element::kI32,
                                {own, builder.elementwise(Op::kSubtract, Element::kI32, {first, place}, address.range)},
                                address.range);
    }
    if (!bound || isAtMost(own, bound))
      bound = own;
    else if (!isAtMost(bound, own))
      bound = builder.elementwise(Op::kMin, Element::kI32, {bound, own}, address.range);
  }
  presence = builder.united(presence, column->presence);
  if (bound && isInRow(bound, address.tensor))
    return bound;
  Value *count = columnCount(address.tensor, address.range);
  const bool isWhole =
      isConstant(first) && isConstant(count) && !bound && first->number.integer + axis->extent <= count->number.integer;
  if (!isWhole)
    presence = builder.united(presence, program.arena.copy(std::vector{Presence{axis, column, count}}));
  if (!bound || isAtMost(count, bound))
    return count;
  return builder.elementwise(Op::kMin, Element::kI32, {bound, count}, address.range);
}

// Of an index that counts along one axis, its first element. nullptr: it is none.
Value *Elaborator::firstOf(Value *index, const Axis *axis, const SourceRange &range) {
  Sum sum;
  sum.add(index, 1);
  const auto term = std::ranges::find_if(sum.terms, [](const auto &each) { return each.first->op == Op::kIota; });
  if (index->axes != axis->bit() || term == sum.terms.end() || term->second != 1)
    return nullptr;
  Value *first = builder.substituted(index, axis, builder.constant(Constant::ofInteger(0), Element::kI32, range));
  // Without what presence says: it is the columns' own.
  while (first->op == Op::kWiden)
    first = first->operands[0];
  return first;
}

std::span<const Presence> Elaborator::paddingOf(const Axis *axis) {
  if (axis->extent == axis->count)
    return {};
  Value *&index = paddings[axis];
  if (!index)
    index = builder.iota(axis, axis->range);
  Value *&count = paddingBounds[axis];
  if (!count)
    count = builder.constant(Constant::ofInteger(axis->count), Element::kI32, axis->range);
  return program.arena.copy(std::vector{Presence{axis, index, count}});
}

bool Elaborator::columnsOf(const Address &address, Access &access, std::span<const Presence> &presence) {
  const Tensor &tensor = *address.tensor->tensor;
  if (!address.column) {
    if (!tensor.hasColumns)
      return true;
    if (!tensor.columnAxis) {
      error(address.range, "rows of '" + std::string(tensor.name) + "' have " + std::to_string(tensor.columns) +
                               " columns, say which after ';'")
          .hint("load " + std::string(tensor.name) +
                "[..; column], column an index of an axis, or declare the row as '; " + std::string(tensor.columnName) +
                "', where " + std::string(tensor.columnName) + " is an axis of the whole row");
      return false;
    }
    access.columnAxis = tensor.columnAxis;
    // What a padded row has behind its end is 0, and does not take part.
    presence = builder.united(presence, paddingOf(tensor.columnAxis));
    return true;
  }
  if (!tensor.hasColumns) {
    error(address.range, "rows of '" + std::string(tensor.name) + "' have one element, and no columns");
    return false;
  }
  const std::vector<const Axis *> axes =
      address.column.is(Form::kFormula) ? program.listOf(address.column.value->axes) : std::vector<const Axis *>();
  Value *first =
      axes.size() == 1 && !axes.front()->isOuter ? firstOf(address.column.value, axes.front(), address.range) : nullptr;
  if (!first) {
    error(address.range, "a column is an index that counts along one axis: first + iota(axis)");
    return false;
  }
  if (address.tensor->size > kMostFormulaSize) {
    error(address.range, "a tensor with columns is chosen by at most " + std::to_string(kMostFormulaSize) +
                             " choices, with those of its parts");
    return false;
  }
  const Axis *axis = axes.front();
  access.columnAxis = axis;
  access.chunk = dividedExactly(first, axis->extent, address.range);
  if (!access.chunk) {
    error(address.range, "columns must begin at a multiple of " + std::to_string(axis->extent) + ", the extent of '" +
                             std::string(axis->name) + "'")
        .note(first->range, "this may be any number")
        .hint("chunk * " + std::to_string(axis->extent) + " + iota(" + std::string(axis->name) +
              "), or for column in 0 .. n by " + std::string(axis->name));
    return false;
  }
  access.column = address.column.value;
  access.columnBound = columnBoundOf(address, axis, first, presence);
  // Rows are not read in front of their begin.
  if (!isNonNegative(access.chunk)) {
    Value *zero = builder.constant(Constant::ofInteger(0), Element::kI32, address.range);
    Value *begins = builder.elementwise(Op::kGreaterEqual, Element::kBool, {access.chunk, zero}, address.range);
    access.condition = access.condition
                           ? builder.elementwise(Op::kAnd, Element::kBool, {begins, access.condition}, address.range)
                           : begins;
  }
  return true;
}

} // namespace nsa::language
