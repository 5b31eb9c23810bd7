// One measured shape: which shapes a device is measured on, and the measurement of one plan.
// Thread-safety: one thread.
#pragma once

#include "tools/support/attention_job.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace nsa::bench {

struct BenchCase {
  std::string name; // of the head geometry: "paper", ...
  Spec spec;
  Maxima maxima;
};

// The NSA paper's heads, the usual 128/128 ones, and a grouped layout, at a short and a long length; on the CPU the
// shape of `tools/quickstart`. `quick` is one small case.
std::vector<BenchCase> benchCases(bool cuda, bool quick);

struct BenchResult {
  std::string templateName, config, source;
  double medianMs = 0, fastestMs = 0, slowestMs = 0;
  double tflops = 0;       // over exactly the attended pairs
  double sampledError = 0; // relative RMS of a few rows against the fp64 reference
};

// `repeats` samples, each of as many runs as take a millisecond or more. The error of a plan whose result is wrong
// is an error of the measurement: a wrong kernel has no speed.
Result<BenchResult> measure(nsa_engine *engine, tools::Accelerator &accelerator, const tools::AttentionInputs &inputs,
                            int repeats);

} // namespace nsa::bench
