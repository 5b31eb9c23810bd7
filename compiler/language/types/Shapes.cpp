#include "compiler/language/types/Shapes.h"

#include "compiler/language/types/Values.h"

#include <algorithm>
#include <bit>

namespace nsa::language {

Shapes::Shapes(const Program &program) : program(program) {
  collect(program.body);
  while (propagate())
    ;
}

void Shapes::collect(const Body *body) {
  if (!body)
    return;
  for (const Value *value : body->values) {
    values.push_back(value);
    if (const Loop *loop = value->loop; loop && value->op == Op::kFor) {
      for (size_t i = 0; i < loop->carried.size(); ++i) {
        handed.emplace_back(loop->carried[i], loop->initial[i]);
        handed.emplace_back(loop->carried[i], loop->yielded[i]);
        equal.emplace_back(loop->carried[i], loop->results[i]);
      }
      collect(loop->body);
    }
    if (const Branch *branch = value->branch) {
      for (size_t i = 0; i < branch->thenYielded.size(); ++i) {
        handed.emplace_back(branch->results[i], branch->thenYielded[i]);
        handed.emplace_back(branch->results[i], branch->otherwiseYielded[i]);
      }
      collect(branch->then);
      collect(branch->otherwise);
    }
    if (value->op == Op::kEnds)
      collect(value->block);
  }
}

bool Shapes::isThin(const Value *tile) const { return tile && tile->isTile() && std::popcount(tile->axes) < 2; }

bool Shapes::set(const Value *tile, const Thin &more) {
  Thin &known = thin[tile];
  const Thin before = known;
  if (tile->axes != 0) {
    known.isColumn |= more.isColumn;
    known.isVector |= more.isVector;
    known.hasRows |= more.hasRows;
  }
  if (!known.rows && (known.isColumn || tile->axes == 0))
    known.rows = more.rows;
  return !(known == before);
}

bool Shapes::unify(const Value *left, const Value *right) {
  if (!isThin(left) || !isThin(right) || left->axes != right->axes)
    return std::max(meet(left, right), meet(right, left));
  const Thin a = thin[left], b = thin[right];
  return std::max(set(left, b), set(right, a));
}

// An operand is needed in the shape of the result.
bool Shapes::meet(const Value *result, const Value *operand) {
  if (!isThin(operand) || !result || !result->isTile())
    return false;
  if (isThin(result) && result->axes == operand->axes) {
    // A column vector goes to all rows of a result that has rows.
    Thin needed = thin[result];
    needed.hasRows = false;
    return std::max(set(result, thin[operand]), set(operand, needed));
  }
  const Shape shape = of(result);
  if (operand->axes == 0)
    return set(operand, {.rows = shape.rows});
  return shape.columns && (operand->axes & shape.columns->bit()) &&
         set(operand, {.isColumn = true, .rows = shape.rows});
}

bool Shapes::propagate() {
  bool changed = false;
  for (const auto &[left, right] : equal)
    changed |= unify(left, right);
  for (const auto &[variable, value] : handed)
    changed |= meet(variable, value);
  for (const Value *value : values) {
    switch (value->op) {
    case Op::kLoad:
      // Columns in memory are columns of the tile. What is gathered has a place for each value.
      if (isThin(value))
        changed |=
            set(value, value->access->columnAxis ? Thin{.isColumn = true, .hasRows = true} : Thin{.isVector = true});
      break;
    case Op::kStore:
      if (value->operands.size() == 1 && value->access->columnAxis && !value->access->rowAxis &&
          isThin(value->operands[0]))
        changed |= set(value->operands[0], {.isColumn = true, .hasRows = true});
      // Each value has its place.
      if (value->access->place && isThin(value->operands[0]))
        changed |= unify(value->operands[0], value->access->place);
      break;
    case Op::kReduceMax:
    case Op::kReduceSum:
    case Op::kLast:
      if (isThin(value->operands[0])) {
        changed |= set(value->operands[0], {.isColumn = true, .hasRows = true});
        changed |= set(value, {.rows = thin[value->operands[0]].rows});
        changed |= set(value->operands[0], {.rows = thin[value].rows});
      } else if (of(value->operands[0]).rows == value->axis) {
        changed |= set(value, {.isColumn = true, .isVector = true});
      }
      break;
    case Op::kDot:
      changed |= meet(value, value->operands[2]);
      break;
    case Op::kFor:
    case Op::kIf:
    case Op::kInsert:
    case Op::kNext:
    case Op::kPick:
      break;
    default:
      for (const Value *operand : value->operands)
        changed |= operand && value->isTile() && meet(value, operand);
      break;
    }
  }
  return changed;
}

Shape Shapes::of(const Value *tile) const {
  const Value *load = tile;
  Shape shape;
  if (load->op == Op::kLoad && load->form == Form::kTile && load->access->outerAxis)
    shape.outer = load->access->outerAxis;
  const AxisSet axes = tile->axes & ~(shape.outer ? shape.outer->bit() : 0);
  if (load->op == Op::kLoad && load->access->rowAxis && load->access->columnAxis) {
    shape.rows = load->access->rowAxis;
    shape.columns = load->access->columnAxis;
    return shape;
  }
  if (tile->op == Op::kPick) {
    shape = of(tile->operands[0]);
    shape.outer = nullptr;
    return shape;
  }
  const auto found = thin.find(tile);
  const Thin known = found == thin.end() ? Thin() : found->second;
  for (const Axis *axis : program.listOf(axes)) {
    const bool isRows = !shape.rows && !known.isColumn && !shape.columns;
    (isRows ? shape.rows : shape.columns) = axis;
  }
  shape.isColumnVector = known.isColumn && known.isVector && !known.hasRows;
  if ((known.isColumn && !shape.isColumnVector) || axes == 0)
    shape.rows = known.rows;
  return shape;
}

} // namespace nsa::language
