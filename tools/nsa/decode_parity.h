// Computes the last tokens of a forward pass a second time by decoding with a cache. decodeLast first adds all earlier
// tokens to the cache in chunks, and then decodes each of the last tokens alone. The decoding runs once with a
// contiguous cache and once with a cache in pages. The rows that decoding computes are checked in the same way as the
// rows of the forward pass, and the block lists are compared with the block lists of the forward pass.
// Thread-safety: one thread.
#pragma once

#include "tools/support/engine.h"
#include "tools/support/operator_check.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace nsa::tools {

// The result for one cache.
struct DecodeParity {
  int32_t pageSize = 0;  // 0: contiguous
  int64_t chunks = 0;    // of the prompt
  int64_t rows = 0;      // how many rows were decoded one by one and checked
  OperatorCheck check;   // of those rows
  int64_t lists = 0;     // how many lists were compared with those of the forward pass
  int64_t tied = 0;      // lists that differ where the scores are a tie
  int64_t differing = 0; // lists that differ otherwise, which docs/specification.md 5 forbids
  nlohmann::json plan;   // of the step of a single token

  bool within() const { return differing == 0 && check.within(); }
};

// Returns an error if the last `tokens` tokens of `inputs` cannot be computed by decoding. The inputs must be inputs of
// the operator nsa with as many queries as keys, and each sequence must be longer than `tokens`.
Status checkDecodable(const OperatorInputs &inputs, int64_t tokens);
// `forward` contains the outputs that a forward pass computed from `inputs`. If the spec has the selection branch,
// `forward` must contain block_list.
Result<std::vector<DecodeParity>> decodeLast(const OperatorInputs &inputs, int64_t tokens,
                                             const EngineSettings &settings, const NamedTensors &forward);

} // namespace nsa::tools
