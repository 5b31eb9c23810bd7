// The last tokens of a forward pass once more, decoded from a cache: a prompt in chunks, then token by token, with the
// cache contiguous and in pages. What comes out is checked as the forward's rows are, and its lists against the
// forward's. Thread-safety: one thread.
#pragma once

#include "tools/support/engine.h"
#include "tools/support/operator_check.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace nsa::tools {

// Of one cache.
struct DecodeParity {
  int32_t pageSize = 0;  // 0: contiguous
  int64_t chunks = 0;    // of the prompt
  int64_t rows = 0;      // decoded one by one and compared
  OperatorCheck check;   // of those rows
  int64_t lists = 0;     // compared with the forward's
  int64_t tied = 0;      // unlike the forward's where the scores are a tie
  int64_t differing = 0; // unlike the forward's otherwise, which docs/specification.md 5 rules out
  nlohmann::json plan;   // of a single token's step

  bool within() const { return differing == 0 && check.within(); }
};

// Whether the inputs of a call can be decoded so: nsa with as many queries as keys, and sequences longer than `tokens`.
Status checkDecodable(const OperatorInputs &inputs, int64_t tokens);
// `forward`: outputs of nsa over the inputs, with block_list where it has one.
Result<std::vector<DecodeParity>> decodeLast(const OperatorInputs &inputs, int64_t tokens,
                                             const EngineSettings &settings, const NamedTensors &forward);

} // namespace nsa::tools
