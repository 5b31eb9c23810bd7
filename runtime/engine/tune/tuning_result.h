// The output tensors of one run of a candidate kernel, which the tuner compares with the output tensors of the tile
// program.
// Ownership: an output's memory belongs to the trial.
// Thread-safety: values.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/device/device.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nsa {

// The outputs of one run on the host, converted to float.
struct TuningResult {
  enum class Kind { kRows, kLse, kLists, kCounts, kIntegers };
  struct Output {
    std::string name; // name of the view or tensor
    Kind kind;
    int64_t rowElements; // not used for kLse
    std::vector<float> values;
    std::vector<int64_t> ownBlocks = {}; // kLists only: for each row the last block that it may name

    // Appends to `ownBlocks` the own blocks of `queries` consecutive queries of a sequence. A query has one block list
    // for each kv head, so the number of its own block is appended once for each kv head. `before` is the position of
    // the first of the `queries` queries in the sequence.
    void addOwnBlocks(const Spec &spec, int64_t before, int64_t queries);
  };
  std::vector<Output> outputs;
};

// Fails when a result differs from the result of the kernel that defines the operator by more than the tolerances of
// docs/specification.md 11. The error names the output, the error measure that is too large, its value and the limit.
Status compareResults(const TuningResult &reference, const TuningResult &result, DType dtype);

// An output in device memory, row-major.
struct ComparedOutput {
  std::string name;
  TuningResult::Kind kind;
  int64_t rowElements;
  int64_t elements;
  void *data;
  DType dtype;

  // Fills the output with NaN, or a block list with invalid block numbers, so that the comparison finds elements that a
  // kernel did not write.
  Status poison(Device &device) const;
  Result<TuningResult::Output> read(Device &device) const;

private:
  // An output is copied in blocks, because the system clears the pages of large host memory each time it is allocated.
  static constexpr int64_t kBlockElements = int64_t{1} << 20;
  // Calls `visit(address, number of the first element, bytes)` for each block, until it fails.
  template <typename Visit> Status inBlocks(const Visit &visit) const;
};

} // namespace nsa
