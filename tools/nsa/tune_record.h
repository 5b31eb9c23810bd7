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
// How many kernels there are, and how many became what: of none, and with one more of that status.
nlohmann::ordered_json emptyCounts();
void countOne(nlohmann::ordered_json &counts, const std::string &status);
// Of each workload its name, its counts, and how many of its kernels others need too; from records with a status.
nlohmann::ordered_json workloadReports(const std::vector<Workload> &workloads, const nlohmann::ordered_json &records);
// "nsa128, gqa4", or "nsa128, gqa4 (dense, window alone)".
std::string titleOf(const std::vector<Workload> &workloads);
// Those that they are limited to; none: no limit.
nlohmann::ordered_json operatorNames(const std::vector<Workload> &workloads);
// The tuner's report of this run, or {"kernels": []} of a kernel without choices.
void addReport(nlohmann::ordered_json &record, const nlohmann::json &report);
// The evidence behind a choice of an earlier run.
void addStored(nlohmann::ordered_json &record, const StoredChoice &choice);

} // namespace nsa::tools
