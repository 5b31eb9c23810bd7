#include "bench/stream_bandwidth.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <immintrin.h>
#include <thread>

namespace nsa::bench {
namespace {

// Lines that are read at once: one stream of loads does not keep as many under way as a core can.
constexpr size_t kStreams = 4;

// A vector of the baseline: what a core reads from memory is bound by lines under way, not by the width of a load.
float readAll(const float *data, size_t count) {
  const size_t part = count / kStreams;
  __m128 sums[kStreams][4] = {};
  for (size_t i = 0; i + 16 <= part; i += 16)
    for (size_t stream = 0; stream < kStreams; ++stream)
      for (size_t lane = 0; lane < 4; ++lane)
        sums[stream][lane] = _mm_add_ps(sums[stream][lane], _mm_loadu_ps(data + stream * part + i + 4 * lane));
  __m128 sum = _mm_setzero_ps();
  for (const auto &stream : sums)
    for (const __m128 &one : stream)
      sum = _mm_add_ps(sum, one);
  return _mm_cvtss_f32(sum);
}

} // namespace

StreamBandwidth::StreamBandwidth(int threads, size_t bytes)
    : threads(threads), from(bytes / 8, 1.0f), to(bytes / 8, 2.0f) {}

template <typename Work> double StreamBandwidth::seconds(const Work &work) const {
  const size_t part = from.size() / static_cast<size_t>(threads);
  const auto start = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> pool;
    for (int t = 1; t < threads; ++t)
      pool.emplace_back([&, t] { work(static_cast<size_t>(t) * part, part); });
    work(0, part);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double StreamBandwidth::gigabytesPerSecond() {
  const double bytes = static_cast<double>(from.size() * sizeof(float));
  std::atomic<float> sink = 0; // keeps the sums alive
  const double reading = seconds([&](size_t begin, size_t count) { sink = readAll(from.data() + begin, count); });
  const double copying = seconds(
      [&](size_t begin, size_t count) { std::memcpy(to.data() + begin, from.data() + begin, count * sizeof(float)); });
  return std::max(bytes / reading, 2 * bytes / copying) * 1e-9;
}

} // namespace nsa::bench
