// Functions that the verbs of `nsa bench` share.
// Thread-safety: one thread.
#pragma once

#include "bench/length_bench.h"
#include "tools/nsa/command.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace nsa::tools {

// Reads a spec from each config file, and names the spec after its file.
Result<std::vector<bench::NamedSpec>> readSpecs(Operator op, const std::vector<std::string> &configs);
// Adds --results: the folder for NAME.json and for the files that `csv` names. Without it nothing is written.
void addResults(CLI::App &command, bench::LengthChoice &choice, const std::string &csv);
// Measures, while a line on a terminal says what is measured (`choice.progress`). After the measurement, prints the
// report: as JSON, or as the machine and the report's table.
Result<nlohmann::ordered_json> measureAndPrint(bench::LengthChoice &choice, bool json,
                                               const std::function<Result<nlohmann::ordered_json>()> &measure);
// Prints where the results of the bench are. A verb calls it last.
void printResultsPlace(const bench::LengthChoice &choice, const std::string &name);

void addDecodeBench(CLI::App &bench, Action &action);

} // namespace nsa::tools
