// What decides random tests: the seed, which is fresh in each run and printed (NSA_TEST_SEED repeats a run); the number
// of cases (NSA_TEST_DRAWS limits it where a tool makes each case slow); and how often a test repeats what may rarely
// go wrong.
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

inline int drawnCases(int otherwise) {
  const char *most = std::getenv("NSA_TEST_DRAWS");
  return most ? static_cast<int>(std::clamp(std::strtol(most, nullptr, 10), 1L, long{otherwise})) : otherwise;
}

// The number in the environment's `variable`, or else `otherwise`.
inline int repeats(const char *variable, int otherwise) {
  const char *wanted = std::getenv(variable);
  return wanted ? static_cast<int>(std::strtol(wanted, nullptr, 10)) : otherwise;
}

} // namespace nsa::test
