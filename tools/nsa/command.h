// Functions that all verbs of `nsa` share: how a verb is registered, the flags that choose a spec or an engine, and
// output. A verb's function returns an Ending, mostly a Status, and main turns it into the exit code.
// Thread-safety: one thread.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/base/status.h"
#include "tools/nsa/config_file.h"
#include "tools/nsa/exit_code.h"
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

// The work of the verb that was called. The verb sets the work, and main runs it once the whole command line was
// parsed.
using Action = std::function<Ending()>;

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
void addHelpCommand(CLI::App &app, Action &action);

// Which operators a flag accepts: those of the specification, or also the kernels that serve only within a plan.
enum class OperatorChoice { kPublic, kKernels };
void addOperatorFlag(CLI::App &command, Operator &op, OperatorChoice choice = OperatorChoice::kPublic);

// --batch, --seqlen-q and --seqlen-k, for sequences of equal length.
struct LengthFlags {
  int64_t batch = 1;
  int64_t seqlenQ = 0; // 0: as seqlenK
  int64_t seqlenK = 4096;

  // `other` is an option that gives the lengths in another way, and excludes these.
  void add(CLI::App &command, CLI::Option *other = nullptr);
  Maxima maxima() const;
};

// Checks what --batch, --seqlen-q, --seqlen-k and --tokens-q ask for. The error names the flag.
Status checkLengthFlags(const Spec &spec, const Maxima &maxima);

// --op, --config, and either --input or the maxima. A verb that runs nothing needs these options to know a spec.
struct SpecFlags {
  Operator op = Operator::kWindow;
  std::string configPath, inputPath;
  LengthFlags lengths;
  int64_t tokensQ = 0; // 0: of sequences that all have as many queries

  void add(CLI::App &command, OperatorChoice choice = OperatorChoice::kPublic);
  struct Chosen {
    Spec spec;
    Maxima maxima;
  };
  Result<Chosen> resolve() const;
};

// --device, --cache, --miss and the other options of an engine. An option that is not given takes the environment's
// value.
struct EngineFlags {
  EngineSettings settings;

  // The text `more` is added to the option's help.
  CLI::Option *addDevice(CLI::App &command, const std::string &more = "");
  void addCache(CLI::App &command);
  void addMiss(CLI::App &command);
  CLI::Option *addKernelBudget(CLI::App &command);
};

// The targets that kernels can be compiled for: "cpu", "sm_80", ...
const std::vector<std::string> &compileTargets();

// --config and --input for verbs that run an operator, and the operator's inputs from both files.
void addInputFiles(CLI::App &command, std::string &configPath, std::string &inputPath);
Result<OperatorFile> readInputs(Operator op, const std::string &configPath, const std::string &inputPath);

// Splits a report of explain or tune into one report for each kernel. The report of a single kernel stays as it is.
std::vector<nlohmann::json> kernelReports(const nlohmann::json &report);

// Like printf, for texts that may come from a foreign file: of all control characters only tabs and new lines pass.
[[gnu::format(printf, 1, 2)]] void printText(const char *format, ...);
// Print "nsa: TEXT" on stderr, with control characters escaped (`printable`). On a terminal with colours "nsa:" is red
// for an error and yellow for a warning.
void printError(const std::string &text);
void printWarning(const std::string &text);

// "1.23 ms", with three significant digits.
std::string millisecondsText(double milliseconds);
// One line for each reason why candidates were left out of a tuning: "41 more were not compiled: beyond the ...". Takes
// rows with `outcome` and `detail`, from a tuner's report or from the store.
std::string prunedText(const nlohmann::json &candidates);
void printJson(const nlohmann::json &value);
// Writes JSON into a file, whole or not at all. An empty path means stdout.
Status writeJson(const std::string &path, const nlohmann::ordered_json &value);

} // namespace nsa::tools
