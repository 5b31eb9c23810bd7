// What every bench of kernels opens: the device, an engine that takes the compiler's best guess and one that tunes, and
// memory that is written before each sample, so that nobody finds anything in a GPU's L2.
// Ownership: plans made from it must not outlive it. Thread-safety: one thread.
#pragma once

#include "bench/plan_contender.h"

#include <memory>
#include <string>
#include <vector>

namespace nsa::bench {

class BenchDevice {
public:
  // `settings` choose device and compiler; the engines have nothing stored, as what an earlier run or a pack has
  // must not be measured.
  static Result<BenchDevice> open(tools::EngineSettings settings);

  tools::Accelerator &accelerator() const { return *device; }
  // "cpu" or "cuda:N": what was chosen when nobody did.
  const std::string &name() const { return deviceText; }
  nsa_engine *engine(bool tuned) const { return engines[tuned].get(); }
  tools::Buffer &flush() { return flushed; } // empty on the CPU
  // Of the machine, for a report.
  Result<nlohmann::json> facts() const;

  // "nsa default", and "nsa tuned" if wanted: made, run and checked.
  Result<std::vector<std::unique_ptr<PlanContender>>> contenders(const Arena &arena, bool tuned) const;

private:
  std::string deviceText;
  std::unique_ptr<tools::Accelerator> device;
  tools::EngineHandle engines[2]; // best guess, tuned
  tools::Buffer flushed;
};

} // namespace nsa::bench
