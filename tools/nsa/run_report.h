// Runs one operator on the tensors of a file, on the device that an engine chooses, and makes the report of `nsa run`,
// as JSON and as text: inputs, kernels, times, and a verdict on every output. Thread-safety: one thread.
#pragma once

#include "tools/nsa/decode_parity.h"
#include "tools/support/operator_check.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace nsa::tools {

struct DeviceRun {
  nlohmann::json plan; // nsa_plan_describe
  RunResult result;
  bool compilerMapped = false; // whether this process has opened the compiler
};
Result<DeviceRun> runOnDevice(const OperatorInputs &inputs, const EngineSettings &settings,
                              const std::set<TensorName> &wanted);

// A line about the inputs: "window bf16, q [1, 2048, 8, 64], k_win ..., window 512".
std::string inputsText(const OperatorInputs &inputs);

// The report before the outputs are checked, with the fields `inputs`, `plan`, `milliseconds` and `compiler_mapped`.
// The report of an operator that selects blocks also has the field `selecting`: how many of the queries left a block
// out.
nlohmann::json runReport(const OperatorInputs &inputs, const DeviceRun &run);
// The report of one launch of a kernel that nsa_program_describe describes, without the field `inputs`.
nlohmann::json kernelReport(const nlohmann::json &kernel, double milliseconds);
// Returns the report's list `checks`, which has an entry for each output.
nlohmann::json checksJson(const OperatorCheck &check);

// Returns the report's list `decode`, which has an entry for each cache.
nlohmann::json decodeJson(const std::vector<DecodeParity> &parities);

void printRunReport(const nlohmann::json &report);

} // namespace nsa::tools
