// What decides random tests: the seed, which is fresh in each run and printed with a failure (test_main.cpp;
// NSA_TEST_SEED repeats a run); the number of cases (NSA_TEST_DRAWS limits it where a tool makes each case slow, and
// raises it to the full number of tests that draw fewer cases every day); and how often a test repeats what may rarely
// go wrong.
// Thread-safety: any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <random>

namespace nsa::test {

// The latest seed that the running test drew, or -1.
inline std::atomic<int64_t> drawnSeed = -1;

inline uint64_t freshSeed() {
  const char *chosen = std::getenv("NSA_TEST_SEED");
  const uint64_t seed = chosen ? std::strtoull(chosen, nullptr, 10) : std::random_device()();
  drawnSeed = static_cast<int64_t>(seed);
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
