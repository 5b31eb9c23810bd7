// What decides random tests: the seed, which is fresh in each run and printed (NSA_TEST_SEED repeats a run); the number
// of cases (NSA_TEST_DRAWS limits it where a tool makes each case slow, and raises it to the full number of tests that
// draw fewer cases every day); and how often a test repeats what may rarely go wrong.
// Thread-safety: any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace nsa::test {

inline uint64_t freshSeed() {
  const char *chosen = std::getenv("NSA_TEST_SEED");
  const uint64_t seed = chosen ? std::strtoull(chosen, nullptr, 10) : std::random_device()();
  std::printf("NSA_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

inline int drawnCases(int full, int daily) {
  const char *wanted = std::getenv("NSA_TEST_DRAWS");
  return wanted ? static_cast<int>(std::clamp(std::strtol(wanted, nullptr, 10), 1L, long{full})) : daily;
}
inline int drawnCases(int full) { return drawnCases(full, full); }

// The number in the environment's `variable`, or else `otherwise`.
inline int repeats(const char *variable, int otherwise) {
  const char *wanted = std::getenv(variable);
  return wanted ? static_cast<int>(std::strtol(wanted, nullptr, 10)) : otherwise;
}

} // namespace nsa::test
