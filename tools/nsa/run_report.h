// What `nsa run` says of a run, as JSON and for a person: inputs, kernels, times, and every output's verdict.
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

// The report without verdicts: `inputs`, `plan`, `milliseconds`, `compiler_mapped`, and for operators that select
// `selecting`: how many queries left a block out, of how many.
nlohmann::json runReport(const OperatorInputs &inputs, const DeviceRun &run);
// `checks`: a list with an entry for each output.
nlohmann::json checksJson(const OperatorCheck &check, DType dtype);

// `decode`: an entry for each cache.
nlohmann::json decodeJson(const std::vector<DecodeParity> &parities, DType dtype);

void printRunReport(const nlohmann::json &report);

} // namespace nsa::tools
