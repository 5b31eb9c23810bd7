// The record of a run of the GPU tests: the machine, the commit, and what each suite gave. A run is a folder that
// run-gpu-tests fills: `suites` has a line for each process, with its number, its program, the name of its suite, which
// part of the suite's tests it ran, and how many parts the suite has. NUMBER.json is what GoogleTest wrote of it, and
// NUMBER.log what was printed. A process that ended early has no NUMBER.json.
// Thread-safety: pure functions, but for the files that they read.
#pragma once

#include "runtime/base/status.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace nsa::test {

using Json = nlohmann::ordered_json;

struct RunFacts {
  Json machine;                   // of bench/measure/machine_facts.h, with the driver's and NVRTC's versions
  std::string seed;               // NSA_TEST_SEED of every test
  std::string maxTokens;          // NSA_TEST_MAX_TOKENS; "": none
  std::string sanitizer, version; // of compute-sanitizer; "": none
  double seconds = 0;             // of the whole run
};

// What becomes a file of bench/results/DEVICE. Its `results` have a row for each program, which pages render.
Result<Json> makeRecord(const std::string &folder, const RunFacts &facts);

// Why a record is no evidence; empty: it is. A run that failed is recorded with its failures, and refused here.
std::vector<std::string> faultsOf(const Json &record);

// The same of a record of nsa_mutate, on any device: a mutant that no test noticed, or tests that fail without a
// change.
std::vector<std::string> mutantFaultsOf(const Json &record);

// The same of a record of torch_gradients.py: a gradient beyond its limit, or a run with other bits.
std::vector<std::string> torchFaultsOf(const Json &record);

// The tests that a report of GoogleTest (tests/test_main.cpp adds the reasons) calls skipped, each with its reason:
// those that a run may leave out, and those that make it fail.
struct SkippedTests {
  std::vector<std::string> allowed, refused;
};
Result<SkippedTests> skippedTests(const std::string &file);

// The folder below `root` with the results of a device of this name; "": there is none.
std::string resultsOf(const std::string &root, const std::string &device);

// The kernels of two results' folders that take, beside a peer measured in the same run, more than twice the part of
// its time that was recorded. The texts of all comparisons go to `lines`. The peer is torch's attention: dense by
// cuDNN, and for window FlashAttention's. Compressed and selected attention and selection have no peer that computes
// the same. They stand beside dense attention of as many tokens, and a step of decode beside dense attention of a
// prefill of 8192 tokens: that ratio cancels how fast the machine is, and compares no two ways to decode.
Result<std::vector<std::string>> slowerKernels(const std::string &recorded, const std::string &fresh,
                                               std::vector<std::string> &lines);

} // namespace nsa::test
