// What every bench of kernels opens: the device, an engine that compiles default kernels, an engine that tunes, and a
// buffer that is written before each sample, so that every run begins with a cold L2 on a GPU.
// Ownership: plans made from a bench device must not outlive it.
// Thread-safety: only one thread at a time may use a BenchDevice.
#pragma once

#include "bench/measure/bench_case.h"
#include "bench/measure/plan_contender.h"

#include <memory>
#include <string>
#include <vector>

namespace nsa::bench {

class BenchDevice {
public:
  // `settings` choose device and compiler. The engines begin without stored kernels, because stored kernels of an
  // earlier run or of a pack must not be measured.
  static Result<BenchDevice> open(tools::EngineSettings settings);

  tools::Accelerator &accelerator() const { return *device; }
  // The device of the engines: "cpu" or "cuda:N".
  const std::string &name() const { return deviceText; }
  nsa_engine *engine(bool tuned) const { return engines[tuned].get(); }
  // The buffer that is larger than the L2; nullptr on the CPU.
  const tools::Buffer *flush() const { return flushed.size() ? &flushed : nullptr; }

  // Uploads inputs for the contenders (Arena::make).
  Result<std::unique_ptr<Arena>> arena(tools::OperatorInputs inputs, int warmUps = 3, std::set<TensorName> wanted = {},
                                       const std::set<TensorName> &withheld = {}) const {
    return Arena::make(*device, flush(), std::move(inputs), warmUps, std::move(wanted), withheld);
  }
  // Makes the contender "nsa default", and also the contender "nsa tuned" if it is wanted. The plan of each contender
  // that `contenders` returns has run once, and its result was correct.
  Result<std::vector<std::unique_ptr<PlanContender>>> contenders(Arena &arena, bool tuned) const;

private:
  std::string deviceText;
  std::unique_ptr<tools::Accelerator> device;
  tools::EngineHandle engines[2]; // [0] default kernels, [1] tuned kernels
  tools::Buffer flushed;
};

} // namespace nsa::bench
