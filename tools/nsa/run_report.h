// The report of `nsa run`, as JSON and as text: inputs, kernels, times, and a verdict on every output.
// Thread-safety: pure functions; `print` writes to stdout.
#pragma once

#include "tools/nsa/decode_parity.h"
#include "tools/nsa/device_run.h"
#include "tools/support/operator_check.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace nsa::tools {

// A line about the inputs: "window bf16, q [1, 2048, 8, 64], k_win ..., window 512".
std::string inputsText(const OperatorInputs &inputs);

// The report before the outputs are checked, with the fields `inputs`, `plan`, `milliseconds` and `compiler_mapped`.
// The report of an operator that selects blocks also has the field `selecting`: how many of the queries left a block
// out.
nlohmann::json runReport(const OperatorInputs &inputs, const DeviceRun &run);
// Returns the report's list `checks`, which has an entry for each output.
nlohmann::json checksJson(const OperatorCheck &check, DType dtype);

// Returns the report's list `decode`, which has an entry for each cache.
nlohmann::json decodeJson(const std::vector<DecodeParity> &parities, DType dtype);

void printRunReport(const nlohmann::json &report);

} // namespace nsa::tools
