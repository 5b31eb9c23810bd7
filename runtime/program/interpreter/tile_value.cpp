#include "runtime/program/interpreter/tile_value.h"

#include <algorithm>

namespace nsa::interpreter {

TileValue TileValue::iota(const Axis *axis) {
  TileValue value;
  value.element = Element::kI32;
  value.axes = {axis};
  for (int64_t i = 0; i < axis->extent; ++i)
    value.cells.push_back({static_cast<double>(i), 0});
  return value;
}

bool TileValue::hasAxis(const Axis *axis) const { return std::ranges::find(axes, axis) != axes.end(); }

void TileValue::existOnly(const Axis *axis, const std::vector<bool> &places) {
  const auto [own, isNew] = exists.emplace(axis, places);
  for (size_t i = 0; !isNew && i < places.size(); ++i)
    own->second[i] = own->second[i] && places[i];
}

void TileValue::inherit(const TileValue &other) {
  for (const auto &[axis, places] : other.exists)
    existOnly(axis, places);
  masked.insert(other.masked.begin(), other.masked.end());
}

Walk::Walk(const AxisSet &axes, std::vector<const TileValue *> values)
    : list(axes.begin(), axes.end()), values(std::move(values)), offsets(this->values.size(), 0),
      places(list.size(), 0) {
  for (const Axis *axis : list)
    count *= static_cast<size_t>(axis->extent);
  for (const TileValue *value : this->values) {
    if (!value->isTile())
      throw Unable("a value that is no tile stands where a tile is wanted");
    std::vector<size_t> own(list.size(), 0);
    size_t stride = 1;
    for (size_t i = value->axes.size(); i-- > 0;) {
      const auto found = std::ranges::find(list, value->axes[i]);
      if (found != list.end())
        own[static_cast<size_t>(found - list.begin())] = stride;
      else if (value->axes[i]->extent != 1)
        throw Unable("a value has the axis '" + value->axes[i]->name + "', which has no place here");
      stride *= static_cast<size_t>(value->axes[i]->extent);
    }
    strides.push_back(std::move(own));
  }
}

int64_t Walk::place(const Axis *axis) const {
  return places[static_cast<size_t>(std::ranges::find(list, axis) - list.begin())];
}

std::string Walk::placeText() const {
  std::string text;
  for (size_t i = 0; i < list.size(); ++i)
    text.append(text.empty() ? "" : ", ").append(list[i]->name).append(" = " + std::to_string(places[i]));
  return text;
}

bool Walk::exists(const TileValue &value) const {
  return std::ranges::all_of(value.exists, [&](const auto &known) {
    const auto found = std::ranges::find(list, known.first);
    return found == list.end() || known.second[static_cast<size_t>(places[static_cast<size_t>(found - list.begin())])];
  });
}

void Walk::next() {
  for (size_t axis = list.size(); axis-- > 0;) {
    const bool isLast = ++places[axis] == list[axis]->extent;
    for (size_t value = 0; value < values.size(); ++value)
      if (isLast)
        offsets[value] -= strides[value][axis] * static_cast<size_t>(list[axis]->extent - 1);
      else
        offsets[value] += strides[value][axis];
    if (!isLast)
      return;
    places[axis] = 0;
  }
}

TileValue mapped(Element element, std::span<const TileValue *const> values,
                 const std::function<Cell(std::span<const Cell>)> &make) {
  AxisSet axes;
  for (const TileValue *value : values)
    axes.insert(value->axes.begin(), value->axes.end());
  TileValue result;
  result.element = element;
  for (const TileValue *value : values)
    result.inherit(*value);
  Walk walk(axes, {values.begin(), values.end()});
  result.axes = walk.axes();
  result.cells.reserve(walk.size());
  std::vector<Cell> cells(values.size());
  for (size_t i = 0; i < walk.size(); ++i, walk.next()) {
    for (size_t k = 0; k < values.size(); ++k)
      cells[k] = walk.at(k);
    result.cells.push_back(make(cells));
  }
  return result;
}

TileValue sliced(const TileValue &value, const Axis *axis, int64_t place) {
  if (!value.hasAxis(axis))
    return value;
  TileValue result = value;
  result.cells.clear();
  result.exists.erase(axis);
  Walk walk(value.axisSet(), {&value});
  for (size_t i = 0; i < walk.size(); ++i, walk.next())
    if (walk.place(axis) == place)
      result.cells.push_back(walk.at(0));
  std::erase(result.axes, axis);
  return result;
}

TileValue widened(const TileValue &value, const AxisSet &axes) {
  TileValue result = value;
  AxisSet all = value.axisSet();
  all.insert(axes.begin(), axes.end());
  Walk walk(all, {&value});
  result.axes = walk.axes();
  result.cells.clear();
  for (size_t i = 0; i < walk.size(); ++i, walk.next())
    result.cells.push_back(walk.at(0));
  return result;
}

TileValue folded(const TileValue &value, const Axis *axis, Element element,
                 const std::function<Cell(std::span<const Cell>)> &fold) {
  TileValue result;
  result.element = element;
  result.inherit(value);
  result.exists.erase(axis);
  AxisSet rest = value.axisSet();
  rest.erase(axis);
  result.axes = {rest.begin(), rest.end()};
  size_t count = 1;
  for (const Axis *left : result.axes)
    count *= static_cast<size_t>(left->extent);
  result.cells.resize(count);
  const auto known = value.exists.find(axis);
  std::vector<std::vector<Cell>> cells(count);
  Walk walk(value.axisSet(), {&value, &result});
  for (size_t i = 0; i < walk.size(); ++i, walk.next())
    if (known == value.exists.end() || known->second[static_cast<size_t>(walk.place(axis))])
      cells[static_cast<size_t>(&walk.at(1) - result.cells.data())].push_back(walk.at(0));
  for (size_t i = 0; i < count; ++i)
    result.cells[i] = fold(cells[i]);
  return result;
}

} // namespace nsa::interpreter
