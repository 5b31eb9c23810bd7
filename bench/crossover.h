// From which length on one implementation beats another, as far as lengths were measured.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nsa::bench {

// Milliseconds of both at one length.
struct Duel {
  int64_t tokens = 0;
  double ours = 0, theirs = 0;
};

struct Crossover {
  int64_t measured = 0; // the shortest length at which ours was the faster one
  // Where both take as long, on a line through the logarithms of lengths and of times from the length before. Nothing
  // where ours wins at the shortest length already: the crossing lies below it.
  std::optional<int64_t> interpolated;

  std::string toString() const; // "at 8192 tokens, about 6100 by interpolation"
};

// nullopt: never. Lengths in any order.
std::optional<Crossover> crossoverOf(std::vector<Duel> duels);

} // namespace nsa::bench
