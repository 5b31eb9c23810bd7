// The shape in which each tile of a program is made. A tile of the dialect has rows and columns, or one value a row, or
// one value a column. Of two axes the one that is declared first is that of the rows. A tile of one axis has it as its
// rows, unless it meets tiles in which the axis is that of the columns. Then the tile has one value a column if it is
// gathered or reduced along rows. If it is of columns of memory, it has rows that are all equal. A tile of no axis has
// one value a row.
// Thread-safety: immutable once it is made.
#pragma once

#include "compiler/language/types/Program.h"

#include <unordered_map>

namespace nsa::language {

struct Shape {
  const Axis *rows = nullptr;  // nullptr: rows that are all equal, as many as the smallest tile has
  const Axis *outer = nullptr; // whose rows are stacked, for all places along it
  const Axis *columns = nullptr;
  bool isColumnVector = false; // one value a column, and no rows

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
    bool isVector = false; // one value a column would do
    bool hasRows = false;  // it has rows all the same, as it is read from columns of memory or reduced along them
    const Axis *rows = nullptr;
    bool operator==(const Thin &) const = default;
  };

  void collect(const Body *body);
  bool propagate();
  bool meet(const Value *result, const Value *operand);
  bool unify(const Value *left, const Value *right);
  bool set(const Value *tile, const Thin &more);
  bool isThin(const Value *tile) const;

  const Program &program;
  std::vector<const Value *> values;
  // What has one shape, and what is handed to a variable: a column vector goes to all rows of a variable that has rows.
  std::vector<std::pair<const Value *, const Value *>> equal, handed;
  std::unordered_map<const Value *, Thin> thin;
};

} // namespace nsa::language
