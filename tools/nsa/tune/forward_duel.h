// Measures the whole forward pass of NSA against dense attention with the same heads. Some rows of both results are
// compared with the fp64 reference first.
// Ownership: a ForwardDuel borrows the engine, and opens the device a second time, for the tensors.
// Thread-safety: one thread at a time, which needs the device for itself.
#pragma once

#include "autotune/workload/tune_crossover.h"
#include "tools/support/accelerator.h"
#include "tools/support/engine.h"

#include <memory>
#include <string>

namespace nsa::tools {

class ForwardDuel {
public:
  // `device` is the engine's device: "cpu" or "cuda:0". It is opened by the first measurement.
  ForwardDuel(nsa_engine *engine, std::string device) : engine(engine), device(std::move(device)) {}

  // Both plans run in turns, on sequences of `tokens` tokens.
  Result<Duel> measure(const CrossoverJob &job, int64_t tokens);

private:
  nsa_engine *engine;
  std::string device;
  std::unique_ptr<Accelerator> accelerator;
  Buffer flush; // bench::flushBuffer
};

} // namespace nsa::tools
