// Functions for all verbs of `nsa`: they register a verb, add the flags that choose a spec or an engine, and print
// results. A verb's function returns an Ending, which main turns into the exit code.
// Thread-safety: one thread.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/base/status.h"
#include "runtime/json/nearest_name.h"
#include "tools/nsa/command/exit_code.h"
#include "tools/nsa/files/config_text.h"
#include "tools/nsa/files/operator_file.h"
#include "tools/support/engine.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nsa::tools {

// The function that does the work of the verb on the command line. The verb's parser stores the function in an Action,
// and main calls it after the whole command line was parsed.
using Action = std::function<Ending()>;

// Makes the parser with all verbs. When a command line is parsed, its verb stores in `action` the function that does
// the work, so `action` must not be destroyed before the command line is parsed.
std::unique_ptr<CLI::App> makeCommandLine(Action &action);

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
void addCheckCommand(CLI::App &app, Action &action);
void addFmtCommand(CLI::App &app, Action &action);

// Adds a verb below `parent` and returns it with its flags, which are there as long as the parser is. The verb's work
// is `run`, which gets the flags.
template <typename Flags, typename Run>
std::pair<CLI::App &, Flags &> addVerb(CLI::App &parent, Action &action, const std::string &name,
                                       const std::string &purpose, Run run) {
  auto flags = std::make_shared<Flags>();
  CLI::App *verb = parent.add_subcommand(name, purpose);
  verb->callback([flags, run, &action] { action = [flags, run] { return run(*flags); }; });
  return {*verb, *flags};
}

// Adds an option with a value. `names` ends with the word that the help has for the value: "-o,--output FILE". A value
// must keep all `rules`.
template <typename Value, typename... Rules>
CLI::Option *addOption(CLI::App &verb, const std::string &names, Value &value, const std::string &help,
                       const Rules &...rules) {
  const size_t space = names.find(' ');
  CLI::Option *option = verb.add_option(names.substr(0, space), value, help)->type_name(names.substr(space + 1));
  (option->check(rules), ...);
  return option;
}
// Each error message of namedValue has the text kNamesFollow in front of the list of allowed names. The generator of
// shell completions searches an error message for kNamesFollow to find the names of an option's values.
inline constexpr std::string_view kNamesFollow = " must be one of ";

// Checks an option whose values have names, and replaces the name by the number that the parser reads. If the text on
// the command line is none of the option's names, the error lists the names and suggests the most similar name.
template <typename Value> CLI::Validator namedValue(std::vector<std::pair<std::string, Value>> values) {
  return {[values = std::move(values)](std::string &text) -> std::string {
            std::vector<std::string_view> names;
            std::string list;
            for (const auto &[name, value] : values) {
              if (name == text) {
                text = std::to_string(static_cast<int64_t>(value));
                return "";
              }
              names.push_back(name);
              list += (list.empty() ? "" : ", ") + name;
            }
            const std::string nearest(nearestName(text, names));
            return text + std::string(kNamesFollow) + list + (nearest.empty() ? "" : ": did you mean " + nearest + "?");
          },
          ""};
}

// The names of the public operators for which `isOffered` is true.
template <typename Predicate> CLI::Validator namedOperator(Predicate isOffered) {
  std::vector<std::pair<std::string, Operator>> names;
  for (const OperatorDef &def : publicOperators())
    if (isOffered(def))
      names.emplace_back(def.name, def.op);
  return namedValue(std::move(names));
}

// Options that several verbs have: --json; --config, whose value is `what`; and --cache, which names `what`.
void addJsonFlag(CLI::App &verb, bool &json);
template <typename Value> CLI::Option *addConfig(CLI::App &verb, Value &value, const std::string &what) {
  return addOption(verb, "--config FILE", value, std::string(kConfigValue) + ": " + what);
}
void addCacheFlag(CLI::App &verb, std::string &path, const std::string &what = "Database of kernels");

// Which operators a flag accepts: only the operators of the specification, or also the kernels that are used only as
// steps of a plan.
enum class OperatorChoice { kPublic, kKernels };
void addOperatorFlag(CLI::App &command, Operator &op, OperatorChoice choice = OperatorChoice::kPublic);

// The options --batch, --seqlen-q and --seqlen-k, for sequences of equal length.
struct LengthFlags {
  int64_t batch = 1;
  int64_t seqlenQ = 0; // 0: as seqlenK
  int64_t seqlenK = 4096;

  // Adds the options --batch, --seqlen-q and --seqlen-k. `other` is another option that determines the lengths. The
  // parser refuses a command line with `other` and one of --batch, --seqlen-q and --seqlen-k.
  void add(CLI::App &command, CLI::Option *other = nullptr);
  Maxima maxima() const;
};

// Checks whether `maxima`, the sizes from --batch, --seqlen-q, --seqlen-k and --tokens-q, are valid for `spec`. An
// error names the flag at fault.
Status checkLengthFlags(const Spec &spec, const Maxima &maxima);

// The options of verbs that plan or compile an operator without running it on given tensors: --op, --config, and either
// --input or the options --batch, --seqlen-q, --seqlen-k and --tokens-q. Together these options describe one call of
// the operator.
struct SpecFlags {
  Operator op{};
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

// The options --device, --cache, --miss and the other settings of an engine. The value of an option that is not given
// comes from its environment variable.
struct EngineFlags {
  EngineSettings settings;

  // The text `more` is added to the option's help.
  CLI::Option *addDevice(CLI::App &command, const std::string &more = "");
  void addCache(CLI::App &command);
  void addMiss(CLI::App &command);
  CLI::Option *addKernelBudget(CLI::App &command);
};

// Checks that a text names a target that kernels can be compiled for.
CLI::Validator compileTarget();
std::string compileTargetsText(); // "cpu, sm_80, ... or sm_120a"
// The option --set NAME=VALUE, which may be repeated, and the values that it gives.
void addSettings(CLI::App &command, std::vector<std::string> &settings, const std::string &help);
Result<std::map<std::string, std::string>> settingsOf(const std::vector<std::string> &settings);
// The option --compiler.
void addCompilerOption(CLI::App &command, std::string &path);

// Adds the options --config and --input to verbs that run an operator, and reads the operator's inputs from the two
// files that they name.
void addInputFiles(CLI::App &command, std::string &configPath, std::string &inputPath);
Result<OperatorFile> readInputs(Operator op, const std::string &configPath, const std::string &inputPath);

// Splits a report of `nsa explain` or `nsa tune` into one report for each kernel. If `report` is about a single kernel,
// kernelReports returns a list with only the unchanged report.
std::vector<nlohmann::json> kernelReports(const nlohmann::json &report);

// Like printf, for texts that may come from a file of another user: of all control characters only tabs and new lines
// are printed as they are.
[[gnu::format(printf, 1, 2)]] void printText(const char *format, ...);
// Print "nsa: TEXT" on stderr, with control characters escaped (`printable`). On a terminal with colours "nsa:" is red
// for an error and yellow for a warning.
void printError(const std::string &text);
void printWarning(const std::string &text);

// One number as printf formats it.
[[gnu::format(printf, 1, 0)]] std::string formatNumber(const char *format, double number);
// Formats a duration with three significant digits: "1.23 ms".
std::string millisecondsText(double milliseconds);
// One line for each reason why candidates were left out of a tuning: "41 more were not compiled: beyond the ...".
// `candidates` is a list of rows with the fields `outcome` and `detail`, from a tuner's report or from the kernel
// store.
std::string prunedText(const nlohmann::json &candidates);
void printJson(const nlohmann::json &value);
// Write a text, or JSON, into a file. If writing fails, an existing file stays as it was. An empty path means stdout.
Status writeOutput(const std::string &path, std::string_view text);
Status writeJson(const std::string &path, const nlohmann::ordered_json &value);

} // namespace nsa::tools
