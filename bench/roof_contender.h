// Measures the processor's peak rates as contenders of a benchmark (bench/measure/contender.h). The measurements of the
// peak rates run in turns with the kernels, so that peak rates and kernels are measured at the same clock rates and
// under the same load of other processes. Thread-safety: one thread.
#pragma once

#include "bench/measure/contender.h"
#include "bench/measure/stream_bandwidth.h"

namespace nsa::bench {

// Measures the processor's peak rate of fused multiply-adds as a contender of a benchmark (bench/measure/contender.h).
// One sample is the time that `threads` threads need for a billion floating point operations each.
class PeakContender final : public Contender {
public:
  explicit PeakContender(int threads) : threads(threads), contenderName("fma peak " + std::to_string(threads)) {}
  const std::string &name() const override { return contenderName; }
  Result<double> sample() override;
  nlohmann::ordered_json facts() const override { return nlohmann::ordered_json::object(); }
  // Returns how many billion operations per second all threads do together, computed from the measured time of one run.
  double gflops(double milliseconds) const { return threads * 1e3 / milliseconds; }

private:
  int threads;
  std::string contenderName;
};

// Measures the memory bandwidth as a contender of a benchmark (bench/measure/contender.h). One sample is the time that
// one core needs to move a gigabyte.
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
