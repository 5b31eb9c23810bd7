// The configurations of a kernel for one problem and target: the combinations of its choices that its `require` lines
// admit. Thread-safety: a pure function, besides what it reports.
#pragma once

#include "compiler/language/types/Declarations.h"

#include <cstdint>
#include <vector>

namespace nsa::language {

// A kernel with more combinations has a mistake in its choices. No tuner could measure so many.
inline constexpr int64_t kMostCombinations = int64_t{1} << 16;

struct Configuration {
  GivenValues choices; // a value for each choice
  int64_t cost = 0;    // the predicted time without a unit
};

struct Configurations {
  std::vector<Configuration> list; // ascending by cost, and by choices where costs are equal
  // If the list is empty: of the `require` lines that excluded a combination the one furthest down, and the last
  // combination that it excluded. nullptr: there was an error.
  const RequireItem *broken = nullptr;
  GivenValues excluded;
};

// `given` are the values of the problem and the target. A choice that is among them has that value only. Reports
// choices with too many combinations, and what is wrong in the declarations.
Configurations configurationsOf(const SyntaxTree &kernel, const LibraryResolver &libraries, const GivenValues &given,
                                Diagnostics &diagnostics);

} // namespace nsa::language
