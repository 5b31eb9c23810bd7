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

// "window bf16, q [1, 2048, 8, 64], k_win ..., window 512".
std::string inputsText(const OperatorInputs &inputs);

// The report without verdicts: `inputs`, `plan`, `milliseconds`, `compiler_mapped`. Operators that select also have
// `selecting`: how many of the queries left a block out.
nlohmann::json runReport(const OperatorInputs &inputs, const DeviceRun &run);
// The list `checks`, with an entry for each output.
nlohmann::json checksJson(const OperatorCheck &check, DType dtype);

// The list `decode`, with an entry for each cache.
nlohmann::json decodeJson(const std::vector<DecodeParity> &parities, DType dtype);

void printRunReport(const nlohmann::json &report);

} // namespace nsa::tools
