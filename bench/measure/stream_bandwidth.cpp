#include "bench/measure/stream_bandwidth.h"

#include "bench/measure/timing.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

namespace nsa::bench {
namespace {

// Lines that are read at once: one stream of loads does not keep as many under way as a core can.
constexpr size_t kStreams = 4;

// A vector that every processor has: what a core reads from memory is bound by lines under way, not by the width of a
// load.
using ReadVector = float __attribute__((vector_size(16)));
constexpr size_t kVectorLanes = sizeof(ReadVector) / sizeof(float);

float readAll(const float *data, size_t count) {
  const size_t part = count / kStreams;
  ReadVector sums[kStreams][4] = {};
  for (size_t i = 0; i + 4 * kVectorLanes <= part; i += 4 * kVectorLanes)
    for (size_t stream = 0; stream < kStreams; ++stream)
      for (size_t chain = 0; chain < 4; ++chain) {
        ReadVector loaded; // from any address
        std::memcpy(&loaded, data + stream * part + i + kVectorLanes * chain, sizeof loaded);
        sums[stream][chain] += loaded;
      }
  ReadVector sum = {};
  for (const auto &stream : sums)
    for (const ReadVector &one : stream)
      sum += one;
  return sum[0];
}

} // namespace

StreamBandwidth::StreamBandwidth(int threads, size_t bytes)
    : threads(threads), from(bytes / 8, 1.0f), to(bytes / 8, 2.0f) {}

template <typename Work> double StreamBandwidth::seconds(const Work &work) const {
  const size_t part = from.size() / static_cast<size_t>(threads);
  const double start = wallMs();
  {
    std::vector<std::jthread> pool;
    for (int t = 1; t < threads; ++t)
      pool.emplace_back([&, t] { work(static_cast<size_t>(t) * part, part); });
    work(0, part);
  }
  return (wallMs() - start) * 1e-3;
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
