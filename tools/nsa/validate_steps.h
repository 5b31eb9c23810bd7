// What `nsa validate` does on a machine, step by step, each a verb of this program: environment, routing, each branch
// by itself, the whole against the reference and decode against prefill, selection, decoding, thresholds.
// Thread-safety: one thread.
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace nsa::tools {

struct ValidateChoice {
  std::string folder; // receives everything
  std::string config; // JSON text of the heads and what else a specification has
  int64_t tokens = 2048;
  int samples = 7;
  std::string device, cache, missPolicy; // "": the verbs' defaults
};

// Names in the folder, beside those of the steps.
inline constexpr const char *kValidatePage = "report.html", *kValidateSummary = "summary.json";

struct ValidateStep {
  std::string name, purpose;
  std::vector<std::vector<std::string>> verbs; // one after another; the last one's stdout is the step's
  std::string output;                          // its file in the folder
  std::vector<std::string> makes = {};         // further files that it leaves there
  std::string needs = {};                      // the step whose files it reads, if any: without it it is not run
  // Filled by running it.
  bool ok = false;
  double seconds = 0;
  std::string trouble = {}; // the last line of its log; "" when ok
};

std::vector<ValidateStep> validateSteps(const ValidateChoice &choice);

// Removes what an earlier run left in the folder, writes the configurations that the steps read, and runs them all: one
// that fails stops only those that need it. `told` is called before and after each. An error: the folder cannot be
// written, or no verb can be started.
Status runSteps(const ValidateChoice &choice, std::vector<ValidateStep> &steps,
                const std::function<void(const ValidateStep &, bool done)> &told);

} // namespace nsa::tools
