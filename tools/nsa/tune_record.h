// Makes the rows of a tuning report: the outcome for each kernel, from the tuner's own report or from the store.
// Thread-safety: tune_record.h has only pure functions.
#pragma once

#include "tools/nsa/stored_choices.h"
#include "tools/nsa/tune_jobs.h"

#include <nlohmann/json.hpp>
#include <string>

namespace nsa::tools {

// The fields that say which kernel a row is about, and how much work it has.
nlohmann::ordered_json jobRecord(const TuneJob &job, const std::string &device, bool isGpu);
// Counts of kernels, in all and by status: emptyCounts has zeros, and countOne adds one kernel.
nlohmann::ordered_json emptyCounts();
void countOne(nlohmann::ordered_json &counts, const std::string &status);
// Lists for each workload its name, its counts of kernels, and how many of its kernels other workloads need too. Takes
// rows of kernels that have a status.
nlohmann::ordered_json workloadReports(const std::vector<Workload> &workloads, const nlohmann::ordered_json &records);
// The text of the workloads, for example "nsa128, gqa4" or "nsa128, gqa4 (dense, window alone)".
std::string titleOf(const std::vector<Workload> &workloads);
// The operators that the workloads are limited to. Empty: no limit.
nlohmann::ordered_json operatorNames(const std::vector<Workload> &workloads);
// Adds the tuner's report of this run, or {"kernels": []} for a kernel without choices.
void addReport(nlohmann::ordered_json &record, const nlohmann::json &report);
// Adds the evidence behind a choice of an earlier run.
void addStored(nlohmann::ordered_json &record, const StoredChoice &choice);

} // namespace nsa::tools
