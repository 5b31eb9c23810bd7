// Makes the rows of a tuning report, each with the outcome for one kernel, from the tuner's own report or from the
// kernel store.
// Thread-safety: tune_record.h has only pure functions.
#pragma once

#include "autotune/workload/stored_choices.h"
#include "autotune/workload/tune_jobs.h"

#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {

// What became of a kernel that workloads need.
enum class TuneState : uint8_t {
  kTuned,
  kTunedElsewhere, // by another process, for which this one waited
  kMade,           // has no candidates to compare
  kStored,         // was there before
  kFailed,
  kLeft // the budget was too little, or the caller ended the run
};
inline constexpr size_t kTuneStates = 6;
std::string_view tuneStateName(TuneState state); // "tuned", "tuned elsewhere", "made", ...

struct TuneCounts {
  std::array<size_t, kTuneStates> by{};

  size_t &operator[](TuneState state) { return by[static_cast<size_t>(state)]; }
  size_t operator[](TuneState state) const { return by[static_cast<size_t>(state)]; }
  size_t kernels() const { return std::reduce(by.begin(), by.end()); }
  nlohmann::ordered_json json() const;
};

struct TuneRow {
  const TuneJob *job = nullptr;
  TuneState state = TuneState::kLeft;
  nlohmann::ordered_json json{}; // null: no worker has reached the kernel
};

// The fields of a report row that say which kernel the row is about, and which call of it is timed.
nlohmann::ordered_json jobRecord(const TuneJob &job, const std::string &device, bool isGpu);
// Lists for each workload its name, its counts of kernels, and how many of its kernels other workloads need too.
nlohmann::ordered_json workloadReports(const std::vector<Workload> &workloads, const std::vector<TuneRow> &rows);
// The names of the workloads as one text, for example "nsa128, gqa4", "nsa128, backward" or "nsa128, gqa4
// (dense, window alone)".
std::string titleOf(const std::vector<Workload> &workloads);
// "forward", "backward" or "both".
std::string_view directionOf(const std::vector<Workload> &workloads);
// The names of the operators that the workloads are limited to. Empty: no limit.
nlohmann::ordered_json operatorNames(const std::vector<Workload> &workloads);
// Adds the tuner's report about a kernel to the kernel's row `record`. A report without candidates adds nothing: it is
// the report of a kernel that has no choices.
void addReport(nlohmann::ordered_json &record, const nlohmann::json &report);
// Adds the measurements that an earlier run stored together with `choice` to the kernel's row `record`.
void addStored(nlohmann::ordered_json &record, const StoredChoice &choice);

} // namespace nsa
