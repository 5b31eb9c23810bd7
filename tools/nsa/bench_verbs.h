// Functions that the verbs of `nsa bench` share.
// Thread-safety: one thread.
#pragma once

#include "bench/verbs/length_bench.h"
#include "tools/nsa/command/command.h"

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace nsa::tools {

// Reads one spec from each config file, and gives the spec the name of its file.
Result<std::vector<bench::NamedSpec>> readSpecs(Operator op, const std::vector<std::string> &configs);
// Adds the options --samples, --warm-ups and, if the caller may choose it, --tune.
void addSampling(CLI::App &command, bench::LengthChoice &choice, bool withTune = true);
// Adds the option --results, which names the folder for NAME.json and for the CSV files that `csv` describes. Without
// it nothing is written.
void addResults(CLI::App &command, bench::LengthChoice &choice, const std::string &files);
// Calls `measure`, and shows on the terminal meanwhile what is being measured (`choice.progress`). After the
// measurement, prints the report, either as JSON or as text: facts about the machine and the report's table.
Result<nlohmann::ordered_json> measureAndPrint(bench::LengthChoice &choice, bool json,
                                               const std::function<Result<nlohmann::ordered_json>()> &measure);
// Prints the paths of the files to which the results of the bench were written. A verb calls it last.
void printResultsPlace(const bench::LengthChoice &choice, const std::string &name);

// Which other implementations a verb measures beside this library.
struct PeerFlags {
  std::string script; // "": the usual one
  bool none = false;

  // Adds the options --peers and --no-peers. `without` says what the verb measures if there is no script.
  void addTo(CLI::App &command, const std::string &without);
  // Starts the script that the user named, or torch's on a GPU. Returns null, with a warning, if torch's cannot run.
  Result<std::unique_ptr<bench::PeerProcess>> start(bench::BenchDevice &device) const;
};

void addDecodeBench(CLI::App &bench, Action &action);
void addProgramBench(CLI::App &bench, Action &action);

} // namespace nsa::tools
