// What a store must not do: write what does not exist, write the place of another program or of another row.
#include "compiler/language/types/Elaborator.h"

#include "compiler/language/types/Explain.h"

#include <algorithm>

namespace nsa::language {

void Elaborator::checkStore(const Value &store, const StoreStatement &statement) {
  // One mistake of a store is enough to look at.
  const size_t before = diagnostics->errorCount();
  checkExistence(store, statement);
  if (diagnostics->errorCount() == before)
    checkPrograms(store, statement);
  if (diagnostics->errorCount() == before && !statement.isUnique)
    checkDistinct(store, statement);
  if (diagnostics->errorCount() == before)
    checkBound(store, statement);
}

// What does not exist of the value is not to be stored, so the coordinates have to leave it out.
void Elaborator::checkExistence(const Value &store, const StoreStatement &statement) {
  const Access &access = *store.access;
  const std::vector<Value *> conditions =
      access.condition && !access.condition->isTile() ? conjunctsOf(access.condition) : std::vector<Value *>();
  const auto leavesOut = [&](const Presence &absent) {
    const auto isIt = [&](const Presence &known) {
      return known.axis == absent.axis && isSame(known.index, absent.index) && isSame(known.bound, absent.bound);
    };
    if (access.column && access.columnAxis == absent.axis &&
        (std::ranges::any_of(access.column->presence, isIt) ||
         (isSame(access.column, absent.index) && isAtMost(access.columnBound, absent.bound))))
      return true;
    for (const Value *coordinate : access.coordinates)
      if (std::ranges::any_of(coordinate->presence, isIt))
        return true;
    return std::ranges::any_of(conditions, [&](const Value *condition) {
      return condition->op == Op::kLess && isSame(condition->operands[0], absent.index) &&
             isSame(condition->operands[1], absent.bound);
    });
  };
  // Of a row that is stored whole, what lies behind its own end is not written.
  const auto isPadding = [&](const Presence &absent) {
    if (absent.axis != access.columnAxis || access.chunk)
      return false;
    Value column{}, columns{};
    column.op = Op::kIota;
    column.axis = absent.axis;
    columns.op = Op::kConstant;
    column.element = columns.element = Element::kI32;
    columns.number = Constant::ofInteger(absent.axis->count);
    return isSame(absent.index, &column) && isAtMost(&columns, absent.bound);
  };
  for (const Value *value : store.operands)
    for (const Presence &absent : value->presence) {
      if (isPadding(absent) || !(value->axes & absent.axis->bit()) || leavesOut(absent))
        continue;
      const std::string axis(absent.axis->name);
      error(statement.value->range, "the value exists only where " + textOf(*absent.index) + " < " +
                                        textOf(*absent.bound) + ", and is stored to all of '" + axis + "'")
          .note(absent.index->range, "the index that its '" + axis + "' has")
          .hint("store along the same index, with its bound");
      return;
    }
}

// Programs of one grid must not write the same place.
void Elaborator::checkPrograms(const Value &store, const StoreStatement &statement) {
  const Access &access = *store.access;
  uint32_t parts = conditionParts | access.tensor->parts | (access.chunk ? access.chunk->parts : 0) |
                   (access.condition ? access.condition->parts : 0);
  for (const Value *coordinate : access.coordinates) {
    parts |= coordinate->parts;
    for (const Presence &known : coordinate->presence)
      parts |= known.bound->parts;
  }
  for (size_t i = 0; i < gridParts.size(); ++i)
    if (!(parts & (uint32_t{1} << i))) {
      error(statement.range, "programs of different '" + std::string(gridParts[i]) + "' store to the same place of '" +
                                 std::string(access.tensor->tensor->name) + "'")
          .note("no coordinate and no condition depends on " + std::string(gridParts[i]))
          .hint("[.. if " + std::string(gridParts[i]) + " == 0]");
      return;
    }
}

namespace {

// What is known of a row from the place that it is stored to: formulas that have one value only among the rows of that
// place. A row is known if its number is.
class RowKnowledge {
public:
  RowKnowledge(const Axis *rows, std::vector<Value *> conditions) : rows(rows), conditions(std::move(conditions)) {}

  void add(Value *formula) {
    if (!(formula->axes & rows->bit()))
      return;
    // Of a sum in which one term alone depends on the row, that term is known.
    Sum sum;
    sum.add(formula, 1);
    Value *term = nullptr;
    for (const auto &[each, factor] : sum.terms)
      if (each->axes & rows->bit()) {
        if (term)
          return;
        term = each;
      }
    if (term && std::ranges::none_of(known, [&](const Value *each) { return isSame(each, term); }))
      known.push_back(term);
  }

  bool isRowKnown() {
    for (Value *condition : conditions)
      if (condition->op == Op::kEqual)
        for (size_t i = 0; i < 2; ++i)
          if (!(condition->operands[1 - i]->axes & rows->bit()))
            add(condition->operands[i]);
    // A quotient and its remainder tell the dividend.
    for (size_t i = 0; i < known.size(); ++i) {
      if (known[i]->op == Op::kIota)
        return true;
      if (known[i]->op != Op::kDivide)
        continue;
      const std::span<Value *const> quotient = known[i]->operands;
      const bool hasRemainder = std::ranges::any_of(known, [&](const Value *each) {
        return each->op == Op::kRemainder && isSame(each->operands[0], quotient[0]) &&
               isSame(each->operands[1], quotient[1]);
      });
      if (hasRemainder)
        add(quotient[0]);
    }
    return false;
  }

private:
  const Axis *rows;
  std::vector<Value *> conditions, known;
};

} // namespace

// The order in which rows are written is not known, so two of them must not have one place.
void Elaborator::checkDistinct(const Value &store, const StoreStatement &statement) {
  const Access &access = *store.access;
  if (!access.rowAxis)
    return;
  RowKnowledge row(access.rowAxis, access.condition ? conjunctsOf(access.condition) : std::vector<Value *>());
  for (Value *coordinate : access.coordinates)
    row.add(coordinate);
  if (row.isRowKnown())
    return;
  const std::string tensor(statement.place.tensor.text), axis(access.rowAxis->name);
  Diagnostic &message = error(statement.place.range, "two elements of '" + axis + "' may be stored to one place of '" +
                                                         std::string(access.tensor->tensor->name) + "'");
  if (access.place)
    message.note(access.place->range, "the place is computed here");
  message.hint("store unique " + tensor + "[..] = .. promises that no two have one place");
}

// Rows that nothing bounds are written behind the end of a tensor in the last program of a grid.
void Elaborator::checkBound(const Value &store, const StoreStatement &statement) {
  const Access &access = *store.access;
  if (!access.rowAxis || access.condition || access.place)
    return;
  for (const Value *coordinate : access.coordinates)
    for (const Presence &known : coordinate->presence)
      if (known.axis == access.rowAxis)
        return;
  const auto along = std::ranges::find_if(
      access.coordinates, [&](const Value *value) { return (value->axes & access.rowAxis->bit()) != 0; });
  diagnostics
      ->warning((*along)->range, "every element of '" + std::string(access.rowAxis->name) +
                                     "' is stored, in the last tile too: nothing bounds this index")
      .note(statement.range, "stored here")
      .hint(".. + iota(" + std::string(access.rowAxis->name) + ") below n");
}

} // namespace nsa::language
