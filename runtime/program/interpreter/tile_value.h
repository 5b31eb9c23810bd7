// A value of the tile language while a program is interpreted: numbers along named axes, with what exists of them, or
// something that is put together of values. An axis that a value does not have is one along which it is the same.
// Thread-safety: none.
#pragma once

#include "runtime/program/interpreter/cell.h"

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace nsa::language {
struct RecordItem;
} // namespace nsa::language

namespace nsa::interpreter {

// Thrown where the interpreter cannot go on, and caught by `interpret`: a program is evaluated over a tree of calls,
// and each of these would otherwise hand the error on.
class Unable : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

struct Axis {
  std::string name;
  size_t number = 0; // in the order of the declarations
  int64_t extent = 0;
  bool isOuter = false;
};

struct ByNumber {
  bool operator()(const Axis *left, const Axis *right) const { return left->number < right->number; }
};
using AxisSet = std::set<const Axis *, ByNumber>;

struct Memory;

struct TileValue {
  // A stack has a value for each place of `along`.
  enum class Kind : uint8_t { kTile, kStack, kTuple, kRecord, kTensor };

  Kind kind = Kind::kTile;
  Element element = Element::kInteger;
  std::string word;
  std::vector<const Axis *> axes; // in the order of the declarations
  std::vector<Cell> cells;        // the last axis is the fastest
  // Along each axis, the places that exist; an axis that is not here exists everywhere.
  std::map<const Axis *, std::vector<bool>, ByNumber> exists;
  // The axes along which a mask left something out: in a product over one of these, 0 times anything is 0.
  AxisSet masked;
  std::vector<TileValue> parts;
  const Axis *along = nullptr;
  const language::RecordItem *record = nullptr;
  Memory *memory = nullptr;

  static TileValue of(Element element, Cell cell) {
    TileValue value;
    value.element = element;
    value.cells = {cell};
    return value;
  }
  static TileValue of(Element element, double number) { return of(element, Cell{number, 0}); }
  static TileValue iota(const Axis *axis);

  bool isTile() const { return kind == Kind::kTile; }
  bool isConstant() const { return isTile() && isUntyped(element); }
  bool hasAxis(const Axis *axis) const;
  AxisSet axisSet() const { return {axes.begin(), axes.end()}; }
  void existOnly(const Axis *axis, const std::vector<bool> &places);
  // What exists of `other` limits what exists of this value, too; and so does what is masked.
  void inherit(const TileValue &other);
};

// Walks over all places of some axes, and knows the cell of a value that lies at each of them.
class Walk {
public:
  Walk(const AxisSet &axes, std::vector<const TileValue *> values);

  size_t size() const { return count; }
  const std::vector<const Axis *> &axes() const { return list; }
  // The value of the number in the constructor's list, where the walk is.
  const Cell &at(size_t value) const { return values[value]->cells[offsets[value]]; }
  // The number of the place along an axis of the walk.
  int64_t place(const Axis *axis) const;
  // "row = 1, c = 0" of all axes
  std::string placeText() const;
  bool exists(const TileValue &value) const;
  void next();

private:
  std::vector<const Axis *> list;
  std::vector<const TileValue *> values;
  std::vector<std::vector<size_t>> strides; // of each value along each axis
  std::vector<size_t> offsets;
  std::vector<int64_t> places;
  size_t count = 1;
};

// The value whose cell at each place is made of the cells of the values there.
TileValue mapped(Element element, std::span<const TileValue *const> values,
                 const std::function<Cell(std::span<const Cell>)> &make);
// The cells at one place of an axis.
TileValue sliced(const TileValue &value, const Axis *axis, int64_t place);
// The same numbers, along these axes, too.
TileValue widened(const TileValue &value, const AxisSet &axes);
// Makes one value of all cells along the axis. `fold` gets the cells that exist.
TileValue folded(const TileValue &value, const Axis *axis, Element element,
                 const std::function<Cell(std::span<const Cell>)> &fold);

} // namespace nsa::interpreter
