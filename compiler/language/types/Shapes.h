// The shape in which each tile of a program is made. A tile of the dialect has rows, and columns or one value a row. Of
// two axes the one that is declared first is that of the rows. A tile of one axis has it as its rows, unless it meets
// tiles in which the axis is that of the columns: then all its rows are equal. A tile of no axis has one value a row.
// Thread-safety: immutable once it is made.
#pragma once

#include "compiler/language/types/Program.h"

#include <unordered_map>

namespace nsa::language {

struct Shape {
  const Axis *rows = nullptr;  // nullptr: rows that are all equal, as many as the smallest tile has
  const Axis *outer = nullptr; // whose rows are stacked, for all places along it
  const Axis *columns = nullptr;

  bool operator==(const Shape &) const = default;
};

class Shapes {
public:
  explicit Shapes(const Program &program);

  Shape of(const Value *tile) const;

private:
  // A tile of one or of no axis.
  struct Thin {
    bool isColumn = false; // its axis is that of the columns
    const Axis *rows = nullptr;
    bool operator==(const Thin &) const = default;
  };

  void collect(const Body *body);
  bool propagate();
  bool meet(const Value *result, const Value *operand);
  bool unify(const Value *left, const Value *right);
  bool set(const Value *tile, bool isColumn, const Axis *rows);
  bool isThin(const Value *tile) const;

  const Program &program;
  std::vector<const Value *> values;
  std::vector<std::pair<const Value *, const Value *>> equal; // what loops and branches hand on
  std::unordered_map<const Value *, Thin> thin;
};

} // namespace nsa::language
