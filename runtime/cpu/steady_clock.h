// A LaunchClock for the CPU. On the CPU a launch returns when the kernel has ended.
// Thread-safety: one thread at a time may use a SteadyClock.
#pragma once

#include "runtime/device/launch_clock.h"

#include <chrono>

namespace nsa::cpu {

class SteadyClock final : public LaunchClock {
public:
  Status mark(void *) override {
    moments.push_back(std::chrono::steady_clock::now());
    return Status::ok();
  }
  Result<std::vector<double>> spans() override {
    std::vector<double> result;
    for (size_t i = 1; i < moments.size(); ++i)
      result.push_back(std::chrono::duration<double, std::milli>(moments[i] - moments[i - 1]).count());
    return result;
  }

private:
  std::vector<std::chrono::steady_clock::time_point> moments;
};

} // namespace nsa::cpu
