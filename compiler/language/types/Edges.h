// Where a mask has to be applied: the condition under which some element of a tile that counts may fail the mask's
// predicate. Elsewhere the tile is left as it is, and products need not annihilate.
// Thread-safety: none.
#pragma once

#include "compiler/language/types/Ends.h"

namespace nsa::language {

// The parts of a predicate that are joined by `&&`.
std::vector<Value *> conjunctsOf(Value *predicate);

struct Edge {
  Value *condition = nullptr;     // a scalar bool
  const Value *unknown = nullptr; // the part whose ends are not known, so that every tile is an edge
};

class Edges {
public:
  Edges(ValueBuilder &builder, Ends &ends) : builder(builder), ends(ends) {}

  // Whether the condition can fail in a tile. Along the axes of `full` all elements count, along others those that
  // exist.
  Edge canFail(Value *condition, AxisSet full);
  // The same for: index < bound.
  Edge canFail(const Presence &presence, AxisSet full);

private:
  Edge always(const Value *unknown);
  // Whether sum < 0, or sum <= 0 if `orEqual`, for some element.
  Edge canBeBelow(const Sum &sum, bool orEqual, AxisSet full, const SourceRange &range);

  ValueBuilder &builder;
  Ends &ends;
};

} // namespace nsa::language
