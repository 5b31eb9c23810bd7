// What a trial's run leaves in its outputs, to be compared with what the tile program left there.
// Ownership: an output's memory is the trial's. Thread-safety: values.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/engine/device.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nsa {

// Widened to float.
struct TuningResult {
  enum class Kind { kRows, kLse, kLists, kCounts };
  struct Output {
    std::string name; // of the view or tensor
    Kind kind;
    int64_t rowElements; // of all but kLse
    std::vector<float> values;
    std::vector<int64_t> ownBlocks = {}; // of kLists: by row, the last block that it may name

    // Of the lists of so many queries behind `before` other tokens, one for each head of keys.
    void addOwnBlocks(const Spec &spec, int64_t before, int64_t queries);
  };
  std::vector<Output> outputs;
};

// An output in device memory, row-major.
struct ComparedOutput {
  std::string name;
  TuningResult::Kind kind;
  int64_t rowElements;
  int64_t elements;
  void *data;
  DType dtype;

  // Fills it with NaN, or what is no block, so that an element nobody writes is seen.
  Status poison(Device &device) const;
  Result<TuningResult::Output> read(Device &device) const;
};

} // namespace nsa
