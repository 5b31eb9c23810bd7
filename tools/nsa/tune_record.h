// The rows of a tuning report: what became of each kernel, from the tuner's own report or from what is stored.
// Thread-safety: pure functions.
#pragma once

#include "tools/nsa/stored_choices.h"
#include "tools/nsa/tune_jobs.h"

#include <nlohmann/json.hpp>
#include <string>

namespace nsa::tools {

// The fields that say which kernel it is and what it has to do.
nlohmann::ordered_json jobRecord(const TuneJob &job, const std::string &device, bool isGpu);
// The tuner's report of this run, or {"kernels": []} of a kernel without choices.
void addReport(nlohmann::ordered_json &record, const nlohmann::json &report);
// The evidence behind a choice of an earlier run.
void addStored(nlohmann::ordered_json &record, const StoredChoice &choice);

} // namespace nsa::tools
