// The functions of nsa/tune.h.
#include "autotune/workload/tune_plan.h"
#include "autotune/workload/tune_run.h"
#include "runtime/capi/handles.h"
#include "runtime/capi/sized_structs.h"
#include "runtime/engine/report/stopwatch.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

namespace nsa::capi {
namespace {

using Json = nlohmann::ordered_json;

// What errors and reports call the text.
constexpr const char *kWorkload = "workload";

Status checkFlag(const char *name, int32_t value) {
  return value == 0 || value == 1 ? Status::ok() : Status::invalid(name, std::to_string(value), "must be 0 or 1");
}

Status checkSeconds(const char *name, double seconds) {
  return (std::isfinite(seconds) && seconds >= 0) || seconds == kOff
             ? Status::ok()
             : Status::invalid(name, std::to_string(seconds),
                               "must be positive and finite, 0 (unset) or -1 (no limit)");
}

Result<TuneDirection> directionOf(int64_t value) {
  static_assert(static_cast<int>(TuneDirection::kForward) == NSA_TUNE_FORWARD &&
                static_cast<int>(TuneDirection::kBackward) == NSA_TUNE_BACKWARD &&
                static_cast<int>(TuneDirection::kBoth) == NSA_TUNE_BOTH);
  if (value < NSA_TUNE_FORWARD || value > NSA_TUNE_BOTH)
    return Status::invalid(kDirectionField, std::to_string(value),
                           "must be NSA_TUNE_FORWARD, NSA_TUNE_BACKWARD or NSA_TUNE_BOTH");
  return static_cast<TuneDirection>(value);
}

std::vector<std::string> namesOf(const char *list) {
  std::vector<std::string> names;
  const std::string_view text = list ? list : "";
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    names.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

// A field that a function does not read.
Status checkUnread(const char *name, bool isSet, const char *reader) {
  return isSet ? Status::invalid(name, "set", "must be 0: only " + std::string(reader) + " reads it") : Status::ok();
}

nsa_tune_event eventOf(const TuneProgress &told) {
  return !told.record                       ? NSA_TUNE_BEGINS
         : told.state == TuneState::kFailed ? NSA_TUNE_FAILED
         : told.state == TuneState::kMade   ? NSA_TUNE_MADE
         : told.state == TuneState::kLeft   ? NSA_TUNE_LEFT
                                            : NSA_TUNE_TUNED;
}

TuneCallback callbackOf(const nsa_tune_options &options) {
  if (!options.progress)
    return {};
  return [callback = options.progress, user = options.user](const TuneProgress &told) {
    const std::string error = told.failure.isOk() ? "" : told.failure.error().sentence();
    nsa_tune_progress progress = nsa_init_sized<nsa_tune_progress>();
    progress.event = eventOf(told);
    progress.status = static_cast<nsa_status>(told.failure.code());
    progress.what = told.what.c_str();
    progress.problem = told.problem.c_str();
    progress.error = error.c_str();
    progress.done = told.done;
    progress.total = told.total;
    progress.seconds_left = told.secondsLeft.value_or(-1);
    return callback(user, &progress) == 0;
  };
}

std::string fill(nsa_tune_counts &counts, const TuneOutcome &outcome) {
  const TuneCounts &by = outcome.counts;
  counts.kernels = by.kernels();
  counts.tuned = by[TuneState::kTuned] + by[TuneState::kTunedElsewhere];
  counts.made = by[TuneState::kMade];
  counts.stored = by[TuneState::kStored];
  counts.failed = by[TuneState::kFailed];
  counts.left = by[TuneState::kLeft];
  counts.seconds = outcome.seconds;
  counts.stopped = outcome.isStopped;
  return outcome.report.dump();
}

// The report of nsa_tune_spec: that of one kernel, or a list of them.
void fillOfSpec(nsa_tune_counts &counts, const Json &report) {
  const Json kernels = report.contains("kernels") ? report["kernels"] : Json::array({report});
  counts.kernels = kernels.size();
  for (const Json &kernel : kernels)
    ++(!kernel.value("store_trouble", "").empty() ? counts.failed
       : kernel.value("tuned", false)             ? counts.tuned
                                                  : counts.left);
}

// A dry run counts what a run would have to do as left.
std::string fill(nsa_tune_counts &counts, const TunePlan &plan) {
  counts.kernels = plan.kernels;
  counts.stored = plan.stored;
  counts.left = plan.kernels - plan.stored;
  return plan.report.dump();
}

double secondsOf(double seconds) { return seconds == kOff ? kNoBudgetSeconds : seconds; }

Result<std::string> tuneSpec(const Request &request, const nsa_tune_options &options, nsa_tune_counts &counts) {
  constexpr const char *kReader = "nsa_tune_workload";
  NSA_RETURN_IF_ERROR(checkSeconds("kernel_seconds", options.kernel_seconds));
  NSA_RETURN_IF_ERROR(checkUnread("budget_seconds", options.budget_seconds != 0, kReader));
  NSA_RETURN_IF_ERROR(checkUnread("operators", options.operators, kReader));
  NSA_RETURN_IF_ERROR(checkUnread("again", options.again, kReader));
  NSA_RETURN_IF_ERROR(checkUnread("dry_run", options.dry_run, kReader));
  NSA_RETURN_IF_ERROR(checkUnread("progress", options.progress, kReader));
  NSA_RETURN_IF_ERROR(checkUnread(kDirectionField, options.direction != 0, kReader));
  const Stopwatch watch;
  const double seconds = secondsOf(options.kernel_seconds);
  NSA_ASSIGN_OR_RETURN(std::string text, options.kernel ? request.engine->tuneKernel(request.spec, request.maxima,
                                                                                     options.kernel, seconds)
                                                        : request.engine->tune(request.spec, request.maxima, seconds));
  fillOfSpec(counts, Json::parse(text));
  counts.seconds = watch.milliseconds() / 1000;
  return text;
}

Result<std::string> tuneWorkload(Engine &engine, const char *text, const nsa_tune_options &options,
                                 nsa_tune_counts &counts) {
  NSA_RETURN_IF_ERROR(requirePointer(text, kWorkload));
  NSA_RETURN_IF_ERROR(checkSeconds("budget_seconds", options.budget_seconds));
  NSA_RETURN_IF_ERROR(checkSeconds("kernel_seconds", options.kernel_seconds));
  NSA_RETURN_IF_ERROR(checkUnread("kernel", options.kernel, "nsa_tune_spec"));
  NSA_RETURN_IF_ERROR(checkFlag("again", options.again));
  NSA_RETURN_IF_ERROR(checkFlag("dry_run", options.dry_run));
  NSA_ASSIGN_OR_RETURN(const TuneDirection direction, directionOf(options.direction));
  NSA_ASSIGN_OR_RETURN(Workload workload, Workload::parse(text, kWorkload));
  workload.direction = direction;
  std::vector<Workload> workloads = {std::move(workload)};
  NSA_RETURN_IF_ERROR(limitTo(namesOf(options.operators), workloads));
  NSA_RETURN_IF_ERROR(engine.checkTunes());
  NSA_ASSIGN_OR_RETURN(TuneEnvironment environment, TuneEnvironment::of(engine.settings(), engine.kernelCache()));
  const TuneLimits limits{.budgetSeconds = options.budget_seconds == kOff ? 0 : options.budget_seconds,
                          .kernelSeconds = secondsOf(options.kernel_seconds),
                          .again = options.again == 1};
  if (options.dry_run) {
    NSA_ASSIGN_OR_RETURN(
        TunePlan plan, planWorkloads(workloads, environment, {{engine.choiceKey(), engine.device().isGpu()}}, limits));
    return fill(counts, plan);
  }
  const auto tuneKernel = [&engine](const TuneJob &job, double budgetSeconds) {
    return engine.tuneKernel(job.spec, job.maxima, job.problem, budgetSeconds);
  };
  NSA_ASSIGN_OR_RETURN(TuneOutcome outcome, runWorkloads(workloads, environment,
                                                         {{.name = engine.deviceName(),
                                                           .key = engine.choiceKey(),
                                                           .isGpu = engine.device().isGpu(),
                                                           .tuneKernel = tuneKernel}},
                                                         {.limits = limits, .tell = callbackOf(options)}));
  return fill(counts, outcome);
}

// What both functions have in common: `tune` gets the options and fills the counts.
template <typename Tune>
Status tuneAndReport(const nsa_tune_options *options, nsa_tune_counts *counts, char **json, Tune tune) {
  if (json)
    *json = nullptr;
  nsa_tune_counts full = nsa_init_sized<nsa_tune_counts>();
  if (counts)
    NSA_RETURN_IF_ERROR(giveStruct(full, counts, "counts")); // before anything is tuned
  nsa_tune_options storage = nsa_init_sized<nsa_tune_options>();
  if (!options)
    options = &storage;
  NSA_RETURN_IF_ERROR(readStruct(options, storage, "options"));
  const Result<std::string> report = tune(*options, full);
  if (report && counts)
    NSA_RETURN_IF_ERROR(giveStruct(full, counts, "counts"));
  return json ? giveText(report, json) : report.status();
}

} // namespace
} // namespace nsa::capi

using namespace nsa;
using namespace nsa::capi;

nsa_status nsa_tune_spec(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima,
                         const nsa_tune_options *options, nsa_tune_counts *counts, char **json,
                         nsa_error *error) noexcept {
  return guarded(error, [&] {
    return tuneAndReport(options, counts, json,
                         [&](const nsa_tune_options &read, nsa_tune_counts &full) -> Result<std::string> {
                           Request request;
                           NSA_RETURN_IF_ERROR(readRequest(engine, spec, maxima, request));
                           return tuneSpec(request, read, full);
                         });
  });
}

nsa_status nsa_tune_workload(nsa_engine *engine, const char *workload, const nsa_tune_options *options,
                             nsa_tune_counts *counts, char **json, nsa_error *error) noexcept {
  return guarded(error, [&] {
    return tuneAndReport(options, counts, json,
                         [&](const nsa_tune_options &read, nsa_tune_counts &full) -> Result<std::string> {
                           NSA_ASSIGN_OR_RETURN(Engine * found, engineOf(engine));
                           return tuneWorkload(*found, workload, read, full);
                         });
  });
}
