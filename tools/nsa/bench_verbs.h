// What the verbs of `nsa bench` share. Thread-safety: one thread.
#pragma once

#include "bench/length_bench.h"
#include "tools/nsa/command.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace nsa::tools {

// Each named by its file.
Result<std::vector<bench::NamedSpec>> readSpecs(Operator op, const std::vector<std::string> &configs);
// Measures with a line on a terminal that says what (`choice.progress`), and prints what the report holds: as JSON, or
// the machine and its table.
Result<nlohmann::ordered_json> measureAndPrint(bench::LengthChoice &choice, bool json,
                                               const std::function<Result<nlohmann::ordered_json>()> &measure);

void addDecodeBench(CLI::App &bench, Action &action);

} // namespace nsa::tools
