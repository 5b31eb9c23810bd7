// Finds the length from which on one implementation is faster than another, within the lengths that were measured.
// Thread-safety: crossover.h has only pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nsa {

// The times, in milliseconds, of our implementation (`ours`) and of the other implementation (`theirs`) at one length.
struct Duel {
  int64_t tokens = 0;
  double ours = 0, theirs = 0;
};

struct Crossover {
  int64_t measured = 0; // the shortest measured length at which ours was faster
  // The length at which the two implementations take equally long, interpolated between two measured lengths by a
  // straight line through the logarithms of lengths and times. nullopt if our implementation is already faster at the
  // shortest length, because the crossing is then below it.
  std::optional<int64_t> interpolated;

  std::string toString() const; // "at 8192 tokens, about 6100 by interpolation"
};

// nullopt: ours is never faster. The measured lengths may be given in any order.
std::optional<Crossover> crossoverOf(std::vector<Duel> duels);

} // namespace nsa
