// Runs the steps of `nsa validate` on this machine. Each step of the validation runs verbs of the program `nsa`. The
// first steps report the environment of the machine and the choice of kernels. The next steps compare each branch by
// itself, the whole forward pass, the decoding of its last tokens, and the gradient of the forward pass with the fp64
// reference. The last steps write the selected tokens to a file, and measure decoding and thresholds.
// Thread-safety: one thread.
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace nsa::tools {

struct ValidateChoice {
  std::string folder; // receives all files
  std::string config; // JSON text with the heads and the other keys of a config file
  int64_t tokens = 2048;
  int samples = 7;
  std::string device, cache, missPolicy; // "": the verbs' defaults

  // The path of a file in the folder.
  std::string file(const std::string &name) const { return (std::filesystem::path(folder) / name).string(); }
};

// The names of the two files that `nsa validate` writes in addition to the files of its steps.
inline constexpr const char *kValidatePage = "report.html", *kValidateSummary = "summary.json";

struct ValidateStep {
  std::string name, purpose;
  // Run one after another. The text that the step's last verb writes to stdout is the output of the step.
  std::vector<std::vector<std::string>> verbs;
  std::string output;                  // the file with that output
  std::vector<std::string> makes = {}; // other files that the step makes
  std::string needs = {};              // the step whose files it reads; "": none. It is not run when that step failed
  // Running the step fills these.
  bool ok = false;
  double seconds = 0;
  std::string trouble = {}; // the last line of its log; "" when ok
};

std::vector<ValidateStep> validateSteps(const ValidateChoice &choice);

// Removes the files of an earlier run, writes the configurations that the steps read, and runs all steps. If a step
// fails, the steps that read its files are not run, and all other steps are run. The callback `told` is called before
// and after each step, to show progress. runSteps returns an error if the folder cannot be written or the process of a
// verb cannot be started.
Status runSteps(const ValidateChoice &choice, std::vector<ValidateStep> &steps,
                const std::function<void(const ValidateStep &, bool done)> &told);

// Makes the HTML page that `nsa validate` writes, from the files that the steps wrote into the folder.
std::string validateHtml(const ValidateChoice &choice, const std::vector<ValidateStep> &steps);

} // namespace nsa::tools
