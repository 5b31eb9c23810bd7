// Makes the rows of a tuning report, each with the outcome for one kernel, from the tuner's own report or from the
// kernel store.
// Thread-safety: tune_record.h has only pure functions.
#pragma once

#include "autotune/workload/stored_choices.h"
#include "autotune/workload/tune_jobs.h"

#include <nlohmann/json.hpp>
#include <string>

namespace nsa {

// The fields of a report row that say which kernel the row is about, and which call of it is timed.
nlohmann::ordered_json jobRecord(const TuneJob &job, const std::string &device, bool isGpu);
// A report counts its kernels, in all and by their status. emptyCounts returns these counts with the value 0. countOne
// adds one kernel of the given status to the counts.
nlohmann::ordered_json emptyCounts();
void countOne(nlohmann::ordered_json &counts, const std::string &status);
// Lists for each workload its name, its counts of kernels, and how many of its kernels other workloads need too.
// `records` has a row for each kernel, with the kernel's status.
nlohmann::ordered_json workloadReports(const std::vector<Workload> &workloads, const nlohmann::ordered_json &records);
// The names of the workloads as one text, for example "nsa128, gqa4" or "nsa128, gqa4 (dense, window alone)".
std::string titleOf(const std::vector<Workload> &workloads);
// The names of the operators that the workloads are limited to. Empty: no limit.
nlohmann::ordered_json operatorNames(const std::vector<Workload> &workloads);
// Adds the tuner's report about a kernel to the kernel's row `record`. A report without candidates adds nothing: it is
// the report of a kernel that has no choices.
void addReport(nlohmann::ordered_json &record, const nlohmann::json &report);
// Adds the measurements that an earlier run stored together with `choice` to the kernel's row `record`.
void addStored(nlohmann::ordered_json &record, const StoredChoice &choice);

} // namespace nsa
