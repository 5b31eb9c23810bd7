#include "compiler/language/types/Elaborator.h"
#include "compiler/language/types/PickSearch.h"

#include <algorithm>

namespace nsa::language {

bool Elaborator::isPickedAtRunTime(std::string_view name) const {
  return !name.empty() && picksAtRunTime(following, name);
}

Typed Elaborator::placeTensor(const language::Place &place) {
  const NameExpr name{{ExprKind::kName, 1, 0, place.tensor.range}, place.tensor.text};
  Typed tensor = nameValue(name);
  if (tensor && place.pickIndex) {
    const Axis *along = axis(place.pickAxis);
    const Typed index = expr(*place.pickIndex);
    tensor = along && index ? picked(tensor, along, index, place.range) : Typed();
  }
  if (tensor && !tensor.is(Form::kTensor))
    return fail(place.tensor.range, "'" + std::string(place.tensor.text) + "' is no tensor, but " + describe(tensor));
  return tensor;
}

bool Elaborator::address(const language::Place &place, bool isStore, Address &result) {
  const Typed tensor = placeTensor(place);
  if (!tensor)
    return false;
  result.tensor = tensor.value;
  result.isStore = isStore;
  result.range = place.range;
  for (const Expr *coordinate : place.coordinates) {
    const Typed value = expr(*coordinate);
    if (!value)
      return false;
    const std::span<const Typed> parts =
        value.kind == Typed::Kind::kTuple ? value.elements : std::span<const Typed>(&value, 1);
    for (const Typed &part : parts) {
      const bool isInteger = part.isNumber() ? part.number.kind == Constant::Kind::kInteger
                                             : part.isArithmetic() && part.value->element == Element::kI32;
      if (!isInteger) {
        error(coordinate->range, "a coordinate is i32; this is " + describe(part));
        return false;
      }
      if (part.is(Form::kTile) && !isStore) {
        error(coordinate->range, "a load's place cannot come from a computed tile")
            .note(part.value->range, "the place is computed here")
            .hint("only a store may go where a computed tile says");
        return false;
      }
      result.coordinates.push_back(part);
    }
  }
  const Tensor &declared = *tensor.value->tensor;
  if (result.coordinates.size() != declared.coordinates.size()) {
    std::string names;
    for (const Name &name : declared.coordinates)
      names += (names.empty() ? "" : ", ") + std::string(name.text);
    error({place.range.file, place.range.end > 0 ? place.range.end - 1 : 0, place.range.end},
          "'" + std::string(place.tensor.text) + "' has " + std::to_string(declared.coordinates.size()) +
              " coordinates (" + names + "), found " + std::to_string(result.coordinates.size()))
        .note(declared.range, "declared here");
    return false;
  }
  if (place.column && !(result.column = expr(*place.column)))
    return false;
  if (place.condition && !(result.condition = expr(*place.condition)))
    return false;
  if (result.condition && !(result.condition.isNumber() ||
                            (result.condition.isArithmetic() && result.condition.value->element == Element::kBool))) {
    error(place.condition->range, "a condition is bool; this is " + describe(result.condition));
    return false;
  }
  return true;
}

// Coordinates and the condition of a row may be made of one computed tile. What is made of it by operations of elements
// is taken apart, the last one first, until only that tile is left.
Value *Elaborator::placeOf(std::vector<Value *> tiles, const SourceRange &range) {
  const auto isLater = [](const Value *left, const Value *right) { return left->order < right->order; };
  for (;;) {
    std::ranges::sort(tiles, isLater);
    tiles.erase(std::unique(tiles.begin(), tiles.end()), tiles.end());
    Value *last = tiles.back();
    if (tiles.size() == 1 && last->element == Element::kI32)
      return last;
    tiles.pop_back();
    bool hasTile = false;
    if (isElementwise(last->op))
      for (Value *operand : last->operands)
        if (operand->isTile()) {
          tiles.push_back(operand);
          hasTile = true;
        }
    if (!hasTile) {
      error(range, "the place of a row is made of more than one computed tile")
          .note(last->range, "one of them")
          .hint("a place is made of indices, scalars and one tile of i32");
      return nullptr;
    }
  }
}

Access *Elaborator::access(const Address &address, AxisSet &axes, std::span<const Presence> &presence) {
  auto *access = program.arena.make<Access>();
  *access = Access();
  access->tensor = address.tensor;
  access->staysInShared = -1;
  AxisSet rows = 0;
  std::vector<Value *> coordinates, tiles;
  for (const Typed &coordinate : address.coordinates) {
    Value *value = converted(coordinate, Element::kI32, address.range);
    if (!value)
      return nullptr;
    if (value->isTile())
      tiles.push_back(value);
    rows |= value->axes;
    presence = builder.united(presence, value->presence);
    coordinates.push_back(value);
  }
  access->coordinates = builder.list(coordinates);
  if (address.condition && !(address.condition.isNumber() && address.condition.number.isTrue())) {
    access->condition = converted(address.condition, Element::kBool, address.range);
    if (!access->condition)
      return nullptr;
    rows |= access->condition->axes;
    if (access->condition->isTile())
      tiles.push_back(access->condition);
  }
  if (!tiles.empty() && !(access->place = placeOf(tiles, address.range)))
    return nullptr;
  for (const Axis *axis : program.listOf(rows)) {
    const Axis *&place = axis->isOuter ? access->outerAxis : access->rowAxis;
    if (place) {
      error(address.range, "rows of '" + std::string(address.tensor->tensor->name) + "' lie along '" +
                               std::string(place->name) + "' and '" + std::string(axis->name) +
                               "', but a tile has its rows along one axis");
      return nullptr;
    }
    place = axis;
  }
  if (!columnsOf(address, *access, presence))
    return nullptr;
  axes = rows | (access->columnAxis ? access->columnAxis->bit() : 0);
  if (access->columnAxis && access->columnAxis == access->rowAxis) {
    error(address.range, "'" + std::string(access->rowAxis->name) + "' is the axis of both the rows and the columns");
    return nullptr;
  }
  return access;
}

Typed Elaborator::load(const LoadExpr &expr) {
  const std::string_view name = std::exchange(pendingName, {});
  Address place;
  if (!address(expr.place, false, place))
    return {};
  int64_t stays = -1;
  for (const Schedule &schedule : expr.schedules) {
    const std::optional<int64_t> value = declarations.integer(schedule.value);
    if (!value)
      return {};
    if (schedule.name.text != "shared")
      return fail(schedule.name.range, "a load has no schedule '" + std::string(schedule.name.text) + "'");
    stays = *value;
  }
  const Tensor &tensor = *place.tensor->tensor;
  if (tensor.element == Element::kGradient) {
    error(expr.range, "'" + std::string(tensor.name) + "' is a gradient, which a program only stores")
        .note(tensor.range, "declared here")
        .hint("only the call knows the type of its elements");
    return {};
  }
  // A row that is read only if the tensor is there needs no branch around it.
  const size_t known = knownPresences.size();
  if (place.condition && place.condition.isArithmetic() && !place.condition.isNumber())
    knowPresent(place.condition.value, true);
  const bool isThere = !tensor.isOptional || isPresent(place.tensor);
  knownPresences.resize(known);
  if (!isThere) {
    const std::string text(expr.place.tensor.text);
    error(expr.place.tensor.range, "'" + text + "' may be absent here")
        .note(tensor.range, "declared optional")
        .hint(text + ".present ? load " + text + "[..] : .., load " + text + "[.. if " + text + ".present], or if " +
              text + ".present { .. }");
    return {};
  }
  if (tensor.stored.file && !tensor.isInout) {
    error(expr.range, "'" + std::string(tensor.name) + "' is stored to and loaded")
        .note(tensor.stored, "stored here")
        .hint("declare it inout if a program may read what it wrote");
    return {};
  }
  if (tensor.record)
    return loadRecord(place);
  // Along an outer axis there is a load for each place, or one of all rows where products pick from it.
  for (const Typed &coordinate : place.coordinates) {
    if (!coordinate.is(Form::kFormula))
      continue;
    for (const Axis *axis : program.listOf(coordinate.value->axes))
      if (axis->isOuter && !isPickedAtRunTime(name)) {
        std::vector<Typed> elements;
        for (int64_t i = 0; i < axis->count; ++i) {
          Address each = place;
          for (Typed &part : each.coordinates)
            part = component(part, axis, i);
          if (each.condition)
            each.condition = component(each.condition, axis, i);
          if (!elements.emplace_back(loadAt(each, stays)))
            return {};
        }
        return {.kind = Typed::Kind::kStack, .elements = program.arena.copy(elements), .axis = axis};
      }
  }
  return loadAt(place, stays);
}

// What is loaded depends on the parts of the grid on which its place does.
void Elaborator::addParts(Value &load) {
  load.parts |= load.access->tensor->parts;
  for (const Value *coordinate : load.access->coordinates)
    load.parts |= coordinate->parts;
}

Typed Elaborator::loadAt(const Address &address, int64_t staysInShared) {
  AxisSet axes = 0;
  std::span<const Presence> presence;
  Access *access = this->access(address, axes, presence);
  if (!access)
    return {};
  access->staysInShared = staysInShared;
  const Tensor &tensor = *address.tensor->tensor;
  const bool isPlain = !access->columnAxis && !access->condition;
  Form form = Form::kTile;
  if (isPlain && !axes && presence.empty())
    form = Form::kScalar;
  else if (isPlain && axes && tensor.element == Element::kI32 && !tensor.isInout)
    form = Form::kFormula;
  Value *value = builder.make(Op::kLoad, form, tensor.element, axes, {}, address.range);
  value->access = access;
  value->presence = presence;
  addParts(*value);
  if (form == Form::kTile)
    for (const Presence &known : presence)
      value->zero |= known.axis->bit();
  if (form == Form::kFormula)
    for (const Value *coordinate : access->coordinates)
      value->depth = std::max(value->depth, coordinate->depth);
  return Typed::of(value);
}

// The fields are loads of their own. Those that nothing reads are dropped later.
Typed Elaborator::loadRecord(const Address &address) {
  const Record &record = *address.tensor->tensor->record;
  AxisSet axes = 0;
  std::span<const Presence> presence;
  std::vector<Typed> members;
  for (size_t i = 0; i < record.members.size(); ++i) {
    presence = {};
    Access *access = this->access(address, axes, presence);
    if (!access)
      return {};
    if (access->condition)
      return fail(address.range, "a record is loaded whole, without a condition");
    std::vector<Value *> coordinates(access->coordinates.begin(), access->coordinates.end());
    coordinates.push_back(builder.constant(Constant::ofInteger(static_cast<int64_t>(i)), Element::kI32, address.range));
    access->coordinates = builder.list(coordinates);
    Value *value = builder.make(Op::kLoad, axes ? Form::kFormula : Form::kScalar, record.members[i].element, axes, {},
                                address.range);
    value->access = access;
    value->presence = presence;
    value->name = record.members[i].name;
    addParts(*value);
    for (const Value *coordinate : access->coordinates)
      if (axes)
        value->depth = std::max(value->depth, coordinate->depth);
    members.push_back(Typed::of(value));
  }
  return {.kind = Typed::Kind::kRecord, .elements = program.arena.copy(members), .record = &record};
}

void Elaborator::storeRecord(const Address &address, const Typed &value, const StoreStatement &statement) {
  const SourceRange &range = statement.range;
  const Record &record = *address.tensor->tensor->record;
  if (value.kind != Typed::Kind::kRecord || value.record != &record) {
    error(range, "'" + std::string(address.tensor->tensor->name) + "' holds records " + std::string(record.name) +
                     ", this is " + describe(value));
    return;
  }
  AxisSet axes = 0;
  std::span<const Presence> presence;
  Access *access = this->access(address, axes, presence);
  if (!access)
    return;
  if (axes) {
    error(address.range, "a record is stored at one place");
    return;
  }
  Value *store = builder.make(Op::kStore, Form::kStatement, Element::kNone, 0, {}, range);
  std::vector<Value *> members;
  for (size_t i = 0; i < value.elements.size(); ++i) {
    Value *member = fitted(value.elements[i], record.members[i].element, 0, Form::kScalar, range);
    if (!member)
      return;
    members.push_back(member);
  }
  // The statement stands behind what it needs.
  std::erase(builder.block()->values, store);
  builder.block()->values.push_back(store);
  store->operands = builder.list(members);
  store->access = access;
  checkStore(*store, statement);
}

void Elaborator::storeValue(const Address &address, const Expr &valueExpr, const StoreStatement &statement) {
  const Typed typed = expr(valueExpr);
  if (!typed)
    return;
  const Tensor &tensor = *address.tensor->tensor;
  if (tensor.record)
    return storeRecord(address, typed, statement);
  AxisSet axes = 0;
  std::span<const Presence> presence;
  Access *access = this->access(address, axes, presence);
  if (!access)
    return;
  if (access->outerAxis) {
    error(address.range, "a store has no rows along the outer axis '" + std::string(access->outerAxis->name) + "'");
    return;
  }
  // The store itself rounds a gradient.
  const Element element = tensor.element == Element::kGradient ? Element::kF32 : tensor.element;
  const Element arithmetic = isStorage(element) ? Element::kF32 : element;
  Value *value = nullptr;
  if (typed.is(Form::kTile) && typed.value->element == element)
    value = typed.value;
  else
    value = converted(typed, arithmetic, valueExpr.range);
  if (!value)
    return;
  if (const AxisSet extra = value->axes & ~axes) {
    const Axis *axis = program.listOf(extra).front();
    error(valueExpr.range, "the value has the axis '" + std::string(axis->name) + "', which no coordinate has")
        .hint("sum over " + std::string(axis->name) + " first, or store it along " + std::string(axis->name));
    return;
  }
  value = builder.widened(value, axes, Form::kTile);
  if (value->element != element) {
    const std::string_view name = value->name;
    value = builder.elementwise(Op::kCast, element, {value}, valueExpr.range);
    if (!name.empty())
      value->name = builder.keepText(std::string(name) + "_rounded");
  }
  if (value->name.empty() && !isConstant(value))
    value->name = builder.keepText(std::string(tensor.name) + "_tile");
  Value *store = builder.make(Op::kStore, Form::kStatement, Element::kNone, 0, {value}, statement.range);
  store->access = access;
  checkStore(*store, statement);
}

} // namespace nsa::language
