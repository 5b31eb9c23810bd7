// What decoding gave, beside one forward pass over the same tokens. Thread-safety: pure functions.
#pragma once

#include "history.h"

#include <cstdint>
#include <string>
#include <vector>

namespace example {

// The operator `nsa` over all tokens of the histories: their inputs, with its outputs.
std::vector<History> forwardPass(Device &device, nsa::Engine &engine, const std::vector<History> &histories);

// Differences of outputs count where both selected the same blocks. Scores of two blocks may be so close that rounding
// decides, and the two are not summed in one order: such rows are counted.
struct Comparison {
  double relativeRms = 0, worstRow = 0; // of all rows, and of the worst one of a token and head
  std::int64_t lists = 0;               // of a token and kv head
  std::int64_t otherLists = 0, otherReads = 0;

  static Comparison of(const std::vector<History> &decoded, const std::vector<History> &expected);
  // What the library promises for bf16.
  bool isWithin() const;
  std::string toString() const;
};

} // namespace example
