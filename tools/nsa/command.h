// What the verbs of `nsa` share: how a verb is registered, the flags that choose a spec or an engine, and output.
// A verb's function returns a Status; main turns it into the exit code (0, 1 failure, 2 usage).
// Thread-safety: one thread.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/base/status.h"
#include "tools/nsa/config_file.h"
#include "tools/nsa/operator_file.h"
#include "tools/support/engine.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace nsa::tools {

// Set by the verb that was called, run by main once the whole command line has been understood.
using Action = std::function<Status()>;

void addRunCommand(CLI::App &app, Action &action);
void addCompileCommand(CLI::App &app, Action &action);
void addTuneCommand(CLI::App &app, Action &action);
void addExplainCommand(CLI::App &app, Action &action);
void addGenerateCommand(CLI::App &app, Action &action);
void addDumpSelectionCommand(CLI::App &app, Action &action);
void addBenchCommand(CLI::App &app, Action &action);
void addCacheCommand(CLI::App &app, Action &action);
void addDoctorCommand(CLI::App &app, Action &action);
void addValidateCommand(CLI::App &app, Action &action);

// The operators of the specification, or also those that only serve inside of them.
enum class OperatorChoice { kPublic, kKernels };
void addOperatorFlag(CLI::App &command, Operator &op, OperatorChoice choice = OperatorChoice::kPublic);

// --batch, --seqlen-q and --seqlen-k: sequences that are all as long.
struct LengthFlags {
  int64_t batch = 1;
  int64_t seqlenQ = 0; // 0: seqlenK
  int64_t seqlenK = 4096;

  // `other`: what says the lengths in their place, and excludes them.
  void add(CLI::App &command, CLI::Option *other = nullptr);
  Maxima maxima() const;
};

// --op, --config, and either --input or lengths: what a verb that runs nothing needs to know a spec.
struct SpecFlags {
  Operator op = Operator::kWindow;
  std::string configPath, inputPath;
  LengthFlags lengths;

  void add(CLI::App &command, OperatorChoice choice = OperatorChoice::kPublic);
  struct Chosen {
    Spec spec;
    Maxima maxima;
  };
  Result<Chosen> resolve() const;
};

// --device, --cache, --miss and what else an engine is opened with; unset ones take the environment's value.
struct EngineFlags {
  EngineSettings settings;

  // `more`: added to what the help says of it.
  CLI::Option *addDevice(CLI::App &command, const std::string &more = "");
  void addCache(CLI::App &command);
  void addMiss(CLI::App &command);
  CLI::Option *addTuneBudget(CLI::App &command);
};

// What kernels can be compiled for: "cpu", "sm_80", ...
const std::vector<std::string> &compileTargets();

// --config and --input of verbs that run an operator, and its inputs from both.
void addInputFiles(CLI::App &command, std::string &configPath, std::string &inputPath);
Result<OperatorFile> readInputs(Operator op, const std::string &configPath, const std::string &inputPath);

// Reports of explain and tune: of an operator that is several kernels one each, else the one itself.
std::vector<nlohmann::json> kernelReports(const nlohmann::json &report);

// As printf, for texts that may come from a file of others: of control characters only tabs and new lines come through.
[[gnu::format(printf, 1, 2)]] void printText(const char *format, ...);
// "nsa: TEXT" on stderr, made as printable.
void printWarning(const std::string &text);

// "1.23 ms"; three significant digits.
std::string millisecondsText(double milliseconds);
// One line for each reason why candidates were left out of a tuning: "41 more were not compiled: beyond the ...".
// Takes rows with `outcome` and `detail`, of a tuner's report or of what is stored.
std::string prunedText(const nlohmann::json &candidates);
void printJson(const nlohmann::json &value);
// The same into a file, complete or not at all; to stdout where the path is empty.
Status writeJson(const std::string &path, const nlohmann::ordered_json &value);

} // namespace nsa::tools
