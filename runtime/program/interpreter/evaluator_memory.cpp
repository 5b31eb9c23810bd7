// Loads and stores.
#include "runtime/program/interpreter/evaluator.h"

#include <algorithm>

namespace nsa::interpreter {

using namespace language;

std::string Memory::place(std::span<const int64_t> place) const {
  std::string text = name + "[";
  for (size_t i = 0; i < place.size(); ++i)
    text += (i == 0 ? "" : i == coordinates ? "; " : ", ") + std::to_string(place[i]);
  return text + "]";
}

Evaluator::Address Evaluator::address(const Place &place) {
  const NameExpr named{{ExprKind::kName, 1, 0, place.tensor.range}, place.tensor.text};
  TileValue tensor = name(named);
  if (place.pickIndex)
    tensor = picked(tensor, axis(place.pickAxis), expr(*place.pickIndex), place.range);
  if (tensor.kind != TileValue::Kind::kTensor)
    fail(place.range, "is no tensor");
  Address result;
  result.memory = tensor.memory;
  // A row that its condition leaves out has no place.
  chosenByElement += place.condition ? 1 : 0;
  for (const Expr *coordinate : place.coordinates) {
    const TileValue value = expr(*coordinate);
    if (value.kind == TileValue::Kind::kTuple)
      result.coordinates.insert(result.coordinates.end(), value.parts.begin(), value.parts.end());
    else
      result.coordinates.push_back(value);
  }
  chosenByElement -= place.condition ? 1 : 0;
  if (result.coordinates.size() != result.memory->coordinates)
    fail(place.range, "the tensor has another number of coordinates");
  if (place.column) {
    result.coordinates.push_back(expr(*place.column));
    endWithRow(result.coordinates.back(), *result.memory);
  } else if (result.memory->hasColumns) {
    if (!result.memory->columnAxis)
      fail(place.range, "which columns?");
    result.coordinates.push_back(TileValue::iota(result.memory->columnAxis));
  }
  result.condition = place.condition ? expr(*place.condition) : TileValue::of(Element::kTruth, 1.0);
  for (const TileValue &coordinate : result.coordinates)
    result.axes.insert(coordinate.axes.begin(), coordinate.axes.end());
  result.axes.insert(result.condition.axes.begin(), result.condition.axes.end());
  return result;
}

// Columns behind the end of a row do not exist, whether their index says so or not.
void Evaluator::endWithRow(TileValue &column, const Memory &memory) {
  if (!memory.data || !column.isTile() || column.axes.size() != 1)
    return;
  std::vector<bool> places;
  for (const Cell &cell : column.cells)
    places.push_back(cell.value < static_cast<double>(memory.data->shape[memory.coordinates]));
  column.existOnly(column.axes[0], places);
}

// Whether the element where the walk is exists, and its condition holds.
bool Evaluator::isOpen(const Address &address, const Walk &walk) {
  for (const TileValue &coordinate : address.coordinates)
    if (!walk.exists(coordinate))
      return false;
  return walk.at(address.coordinates.size()).isTrue();
}

std::vector<int64_t> Evaluator::placeOf(const Address &address, const Walk &walk) {
  std::vector<int64_t> place;
  for (size_t i = 0; i < address.memory->labels.size(); ++i)
    place.push_back(static_cast<int64_t>(walk.at(i).value));
  return place;
}

int64_t Evaluator::offset(const Address &address, const Walk &walk, const SourceRange &range, const char *what) {
  const TileTensor &data = *address.memory->data;
  int64_t result = 0;
  for (size_t i = 0; i < address.coordinates.size(); ++i) {
    const Cell &cell = walk.at(i);
    if (cell.error != 0)
      fail(range, "a coordinate is not known exactly");
    const auto place = static_cast<int64_t>(cell.value);
    if (place < 0 || place >= data.shape[i]) {
      if (unchosen > 0)
        return -1;
      if (Diagnostic *message = fault(Fault::Kind::kOutside, range)) {
        const Memory &memory = *address.memory;
        message->text = std::string(what) + " is outside of tensor '" + memory.name + "': '" + memory.labels[i] +
                        "' is " + std::to_string(place) + ", and its extent is " + std::to_string(data.shape[i]);
        message->note("it is at " + memory.place(placeOf(address, walk)) + " of " +
                      memory.place(std::span(data.shape).first(memory.labels.size())) + ", in " + programText(program));
      }
      return -1;
    }
    result = result * data.shape[i] + place;
  }
  return result;
}

TileValue Evaluator::load(const LoadExpr &expr) {
  const Address place = address(expr.place);
  if (place.memory->record)
    return loadRecord(place, expr.range);
  const auto outer = std::ranges::find_if(place.axes, [](const Axis *axis) { return axis->isOuter; });
  if (outer == place.axes.end())
    return loadAt(place, expr.range);
  const Axis *along = *outer;
  TileValue result;
  result.kind = TileValue::Kind::kStack;
  result.along = along;
  for (int64_t i = 0; i < along->extent; ++i) {
    Address each = place;
    for (TileValue &coordinate : each.coordinates)
      coordinate = sliced(coordinate, along, i);
    each.condition = sliced(each.condition, along, i);
    each.axes.erase(along);
    result.parts.push_back(loadAt(each, expr.range));
  }
  return result;
}

TileValue Evaluator::loadAt(const Address &address, const SourceRange &range) {
  TileValue result;
  result.element = address.memory->element;
  for (const TileValue &coordinate : address.coordinates)
    result.inherit(coordinate);
  result.masked.clear();
  std::vector<const TileValue *> values;
  for (const TileValue &coordinate : address.coordinates)
    values.push_back(&coordinate);
  values.push_back(&address.condition);
  Walk walk(address.axes, values);
  result.axes = walk.axes();
  for (size_t i = 0; i < walk.size(); ++i, walk.next()) {
    Cell cell;
    if (isOpen(address, walk) && unchosen == 0) {
      if (!address.memory->data)
        fail(range, "the tensor is absent");
      if (const int64_t at = offset(address, walk, range, "the load"); at >= 0)
        cell = address.memory->data->cells[static_cast<size_t>(at)];
    }
    result.cells.push_back(cell);
  }
  return result;
}

TileValue Evaluator::loadRecord(const Address &address, const SourceRange &range) {
  TileValue result;
  result.kind = TileValue::Kind::kRecord;
  result.record = address.memory->record;
  for (size_t i = 0; i < result.record->fields.size(); ++i) {
    Address member = address;
    member.coordinates.push_back(TileValue::of(Element::kI32, static_cast<double>(i)));
    result.parts.push_back(loadAt(member, range));
  }
  return result;
}

void Evaluator::store(const StoreStatement &statement) {
  const Address place = address(statement.place);
  if (!place.memory->data || unchosen > 0)
    return;
  const TileValue value = expr(*statement.value);
  ++stores;
  if (!place.memory->record)
    return storeAt(place, value, statement);
  for (size_t i = 0; i < value.parts.size(); ++i) {
    Address member = place;
    member.coordinates.push_back(TileValue::of(Element::kI32, static_cast<double>(i)));
    storeAt(member, value.parts[i], statement);
  }
}

void Evaluator::storeAt(const Address &address, const TileValue &value, const StoreStatement &statement) {
  std::vector<const TileValue *> values;
  for (const TileValue &coordinate : address.coordinates)
    values.push_back(&coordinate);
  values.push_back(&address.condition);
  values.push_back(&value);
  Walk walk(address.axes, values);
  const Element type = address.memory->element;
  for (size_t i = 0; i < walk.size(); ++i, walk.next()) {
    if (!isOpen(address, walk) || !walk.exists(value))
      continue;
    if (walk.at(address.coordinates.size()).error != 0)
      fail(statement.range, "the condition of a store is not known");
    Cell cell = walk.at(values.size() - 1);
    if (isStorage(type) && !isStorage(value.element))
      cell = roundedTo(Element::kF32, cell); // a number without a type is an f32 first
    if (const int64_t at = offset(address, walk, statement.range, "the store"); at >= 0)
      write(address, walk, at, cell, statement);
  }
}

void Evaluator::write(const Address &address, const Walk &walk, int64_t offset, Cell cell,
                      const StoreStatement &statement) {
  Memory &memory = *address.memory;
  const auto at = static_cast<size_t>(offset);
  const bool isTwice = memory.stores[at] == stores;
  const bool isOfOthers = memory.programs[at] >= 0 && memory.programs[at] != program;
  if (isTwice || isOfOthers)
    if (Diagnostic *message = fault(Fault::Kind::kStoredTwice, statement.range)) {
      message->text = (isTwice ? "two rows are stored to " : "two programs store to ") +
                      memory.place(placeOf(address, walk)) + ", and which one stays there is not known";
      message->note(isTwice ? "it is in " + programText(program)
                            : "they are " + programText(memory.programs[at]) + " and " + programText(program));
      if (statement.isUnique)
        message->note("'unique' promises that no two rows have one place");
    }
  memory.stores[at] = stores;
  memory.programs[at] = program;
  memory.data->cells[at] = roundedTo(memory.element, cell);
  ++findings.stored;
}

} // namespace nsa::interpreter
