// How tests decode: a history fed to a cache in steps of any size, and all that came out compared with the reference of
// the forward over it.
// Thread-safety: one thread.
#pragma once

#include "tests/harness/operator_fixture.h"
#include "tools/support/decode_run.h"

#include <functional>

namespace nsa::test {

using tools::CacheShape;
using tools::DecodeRun;

// Of the history: two query heads for each of two key heads, and blocks of which a few hundred tokens have many.
Spec smallSpec(DType dtype);

class DecodeTest : public AttentionTest {
protected:
  // How many tokens of each sequence the next step feeds; none of any ends the feeding.
  using NextCounts = std::function<std::vector<int64_t>(const DecodeRun &)>;

  // Feeds the whole history into `collected`.
  void feed(const OperatorInputs &history, const CacheShape &shape, const NextCounts &next);
  // And checks all that came out.
  void decode(const OperatorInputs &history, const CacheShape &shape, const NextCounts &next);
  // As many tokens of each sequence, at most `most` at a time, until all are in.
  static NextCounts evenly(int64_t tokens, int64_t most);

  NamedTensors collected;
  nlohmann::json description; // of the last plan
};

} // namespace nsa::test
