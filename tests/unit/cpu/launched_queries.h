// Which queries a launch over a range of the call's queries computes (templates/tile/library/sequence.tile).
#pragma once

#include "runtime/base/key_splits.h"

#include <algorithm>
#include <cstdint>

namespace nsa::test {

// Returns whether a launch over the rows [begin, end) computes query `query` of the sequence that has `length` queries
// from row `first` on. In a packed batch the sequence has whole tiles in the range.
inline bool isLaunched(bool isPacked, int64_t query, int64_t length, int64_t first, int64_t begin, int64_t end) {
  const auto border = [&](int64_t row) {
    const int64_t queries = std::clamp<int64_t>(row - first, 0, length);
    return isPacked ? (queries + kCpuChunkStep - 1) / kCpuChunkStep * kCpuChunkStep : queries;
  };
  return query < length && query >= border(begin) && query < border(end);
}

} // namespace nsa::test
