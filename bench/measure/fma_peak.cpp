#include "bench/measure/fma_peak.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace nsa::bench {

#if defined(__x86_64__)
namespace {

// A fused multiply-add takes 4 cycles and two start per cycle, so 8 independent chains would just suffice; 16 leave
// room for the scheduler, and AVX-512 has registers for more than them. No memory takes part.
constexpr int kChains = 16;
constexpr int64_t kRounds = 8'000'000;

__attribute__((target("avx512f"))) float chains512() {
  __m512 accumulators[kChains];
  for (int i = 0; i < kChains; ++i)
    accumulators[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 factor = _mm512_set1_ps(0.999f), term = _mm512_set1_ps(0.001f);
  for (int64_t round = 0; round < kRounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i)
      accumulators[i] = _mm512_fmadd_ps(accumulators[i], factor, term);
  }
  for (int i = 1; i < kChains; ++i)
    accumulators[0] = _mm512_add_ps(accumulators[0], accumulators[i]);
  return _mm512_reduce_add_ps(accumulators[0]);
}

// AVX2 has 16 registers in all: 12 chains, factor and term.
constexpr int kChains256 = 12;

__attribute__((target("avx2,fma"))) float chains256() {
  __m256 accumulators[kChains256];
  for (int i = 0; i < kChains256; ++i)
    accumulators[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 factor = _mm256_set1_ps(0.999f), term = _mm256_set1_ps(0.001f);
  for (int64_t round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains256; ++i)
      accumulators[i] = _mm256_fmadd_ps(accumulators[i], factor, term);
  }
  for (int i = 1; i < kChains256; ++i)
    accumulators[0] = _mm256_add_ps(accumulators[0], accumulators[i]);
  return _mm256_cvtss_f32(accumulators[0]);
}

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
  const double operations = 2.0 * (wide ? kChains : kChains256) * lanes * kRounds * threads;
  std::atomic<float> sink = 0; // keeps the chains' results alive
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    auto work = [&] { sink = wide ? chains512() : chains256(); };
    std::vector<std::thread> pool;
    for (int t = 1; t < threads; ++t)
      pool.emplace_back(work);
    work();
    for (std::thread &thread : pool)
      thread.join();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    peak.gflops = std::max(peak.gflops, operations / seconds * 1e-9);
  }
  return peak;
}

#else
// CPU kernels are for x86-64 alone, so there is nothing to hold against another processor's peak.
FmaPeak measureFmaPeak(int, int) { return {}; }
#endif

} // namespace nsa::bench
