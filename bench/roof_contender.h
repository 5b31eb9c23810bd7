// What the processor can do at most, as contenders: they take their turns between the kernels, so both see the same
// clocks and neighbours.
// Thread-safety: one thread.
#pragma once

#include "bench/contender.h"
#include "bench/stream_bandwidth.h"

namespace nsa::bench {

// The time in which so many threads do a billion operations each in fused multiply-adds.
class PeakContender final : public Contender {
public:
  explicit PeakContender(int threads) : threads(threads), contenderName("fma peak " + std::to_string(threads)) {}
  const std::string &name() const override { return contenderName; }
  Result<double> sample() override;
  nlohmann::ordered_json facts() const override { return nlohmann::ordered_json::object(); }
  // Of all threads together, from the time of a sample.
  double gflops(double milliseconds) const { return threads * 1e3 / milliseconds; }

private:
  int threads;
  std::string contenderName;
};

// The time in which one core moves a gigabyte.
class StreamContender final : public Contender {
public:
  const std::string &name() const override { return contenderName; }
  Result<double> sample() override { return 1e3 / stream.gigabytesPerSecond(); }
  nlohmann::ordered_json facts() const override { return nlohmann::ordered_json::object(); }
  double gigabytesPerSecond(double milliseconds) const { return 1e3 / milliseconds; }

private:
  std::string contenderName = "stream";
  StreamBandwidth stream;
};

} // namespace nsa::bench
