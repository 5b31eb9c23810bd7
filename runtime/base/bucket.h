// Buckets of sizes. Sizes that only choose a kernel are rounded up to powers of two, so that one choice serves all
// sizes of a bucket.
// Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace nsa {

// Returns the smallest power of two that is at least `value`, and 1 for a value below 1.
constexpr int64_t bucketOf(int64_t value) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(value, 1))));
}
// Returns the base-2 logarithm of bucketOf(value).
constexpr uint8_t bucketBits(int64_t value) {
  return static_cast<uint8_t>(std::countr_zero(static_cast<uint64_t>(bucketOf(value))));
}

} // namespace nsa
