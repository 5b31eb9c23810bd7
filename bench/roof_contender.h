// Measures the processor's peak rates as contenders of a benchmark (bench/measure/contender.h). The measurements of the
// peak rates run in turns with the kernels, so that peak rates and kernels are measured at the same clock rates and
// under the same load of other processes.
// Thread-safety: one thread.
#pragma once

#include "bench/measure/contender.h"
#include "bench/measure/fma_peak.h"
#include "bench/measure/stream_bandwidth.h"

#include <functional>

namespace nsa::bench {

// One sample is the time of a billion operations, or of a gigabyte.
class RoofContender final : public Contender {
public:
  // The peak rate of fused multiply-adds of `threads` threads together.
  static RoofContender fmaPeak(int threads) {
    return {"fma peak", [threads] { return measureFmaPeak(threads, 1).gflops; }};
  }
  // The memory bandwidth of one core.
  static RoofContender stream() {
    return {"stream", [stream = std::make_shared<StreamBandwidth>()] { return stream->gigabytesPerSecond(); }};
  }

  const std::string &name() const override { return contenderName; }
  Result<double> sample() override {
    const double measured = rate();
    return measured > 0 ? Result<double>(1e3 / measured)
                        : Status::error(ErrorCode::kUnsupported, "this processor has neither AVX-512 nor FMA");
  }
  nlohmann::ordered_json facts() const override { return nlohmann::ordered_json::object(); }

private:
  RoofContender(std::string name, std::function<double()> rate)
      : contenderName(std::move(name)), rate(std::move(rate)) {}

  std::string contenderName;
  std::function<double()> rate; // billions a second
};

} // namespace nsa::bench
