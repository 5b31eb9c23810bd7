// How tests decode: a history is fed to a cache in steps of any size, and all outputs are compared with the reference
// of the forward pass over the history.
// Thread-safety: one thread.
#pragma once

#include "tests/harness/operator_fixture.h"
#include "tools/support/decode_run.h"

#include <functional>

namespace nsa::test {

using tools::CacheShape;
using tools::DecodeRun;

// A spec for the history: two kv heads with two query heads each, and blocks so small that a few hundred tokens have
// many.
Spec smallSpec(DType dtype);

class DecodeTest : public AttentionTest {
protected:
  // How many tokens of each sequence the next step feeds. Zeros for all sequences end the feeding.
  using NextCounts = std::function<std::vector<int64_t>(const DecodeRun &)>;

  // Feeds the whole history into `collected`. A step has no more new tokens than the template serves.
  void feed(const OperatorInputs &history, const CacheShape &shape, const NextCounts &next);
  // Feeds the whole history and checks all outputs.
  void decode(const OperatorInputs &history, const CacheShape &shape, const NextCounts &next);
  // Feeds all sequences alike, at most `most` tokens in a step, until `tokens` are in the cache.
  static NextCounts evenly(int64_t tokens, int64_t most);

  NamedTensors collected;
  nlohmann::json description; // of the last plan
};

} // namespace nsa::test
