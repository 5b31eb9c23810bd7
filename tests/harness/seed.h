// The seed of a test's random draws: fresh in each run and printed, or NSA_TEST_SEED to repeat a run.
// Thread-safety: any thread.
#pragma once

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

} // namespace nsa::test
