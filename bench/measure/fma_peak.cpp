#include "bench/measure/fma_peak.h"

#include "bench/measure/timing.h"

#include <atomic>
#include <cstdint>
#include <thread>

namespace nsa::bench {

#if defined(__x86_64__)
namespace {

constexpr int64_t kRounds = 8'000'000;
// A fused multiply-add takes 4 cycles and two start per cycle, so 8 independent chains would just suffice; 16 leave
// room for the scheduler, and AVX-512 has registers for more than them. AVX2 has 16 registers in all: 12 chains, factor
// and term.
constexpr int kChains512 = 16, kChains256 = 12;

using Vector512 = float __attribute__((vector_size(64)));
using Vector256 = float __attribute__((vector_size(32)));

// No memory takes part.
template <typename Vector, int kChains> [[gnu::always_inline]] inline float chains() {
  Vector accumulators[kChains];
  for (int i = 0; i < kChains; ++i)
    accumulators[i] = Vector{} + static_cast<float>(i);
  const Vector factor = Vector{} + 0.999f, term = Vector{} + 0.001f;
  for (int64_t round = 0; round < kRounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i)
      accumulators[i] = accumulators[i] * factor + term;
  }
  float sum = 0;
  for (const Vector &accumulator : accumulators)
    for (size_t lane = 0; lane < sizeof(Vector) / sizeof(float); ++lane)
      sum += accumulator[lane];
  return sum;
}

__attribute__((target("avx512f"))) float chains512() { return chains<Vector512, kChains512>(); }
__attribute__((target("avx2,fma"))) float chains256() { return chains<Vector256, kChains256>(); }

} // namespace

FmaPeak measureFmaPeak(int threads, int repeats) {
  FmaPeak peak;
  if (__builtin_cpu_supports("avx512f"))
    peak.vectorBits = 512;
  else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    peak.vectorBits = 256;
  else
    return peak;
  peak.threads = threads;
  const bool wide = peak.vectorBits == 512;
  const int lanes = peak.vectorBits / 32;
  const double operations = 2.0 * (wide ? kChains512 : kChains256) * lanes * kRounds * threads;
  std::atomic<float> sink = 0; // keeps the chains' results alive
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const double start = wallMs();
    {
      auto work = [&] { sink = wide ? chains512() : chains256(); };
      std::vector<std::jthread> pool;
      for (int t = 1; t < threads; ++t)
        pool.emplace_back(work);
      work();
    }
    peak.gflops = std::max(peak.gflops, operations / (wallMs() - start) * 1e-6);
  }
  return peak;
}

#else
// CPU kernels are for x86-64 alone, so there is nothing to hold against another processor's peak.
FmaPeak measureFmaPeak(int, int) { return {}; }
#endif

} // namespace nsa::bench
