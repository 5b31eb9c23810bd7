#include "runtime/capi/tune_workload.h"

#include "autotune/workload/tune_plan.h"
#include "autotune/workload/tune_run.h"
#include "runtime/capi/sized_structs.h"

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
  return std::isfinite(seconds) && seconds >= 0
             ? Status::ok()
             : Status::invalid(name, std::to_string(seconds), "must be positive and finite, or 0 for no limit");
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

TuneCallback callbackOf(const nsa_tune_options &options) {
  if (!options.progress)
    return {};
  return [progress = options.progress, user = options.user](const TuneProgress &told) {
    return progress(user, told.what.c_str(), told.done, told.total, told.secondsLeft.value_or(-1)) == 0;
  };
}

void fill(nsa_tune_counts &counts, const Json &report) {
  const Json &by = report["counts"];
  counts.kernels = by.value("kernels", 0);
  counts.tuned = by.value("tuned", 0) + by.value("tuned elsewhere", 0);
  counts.made = by.value("made", 0);
  counts.stored = by.value("stored", 0);
  counts.failed = by.value("failed", 0);
  counts.left = by.value("left", 0);
  counts.seconds = report.value("seconds", 0.0);
  counts.stopped = report.value("interrupted", false);
}

// A dry run counts what a run would have to do as left.
void fillPlanned(nsa_tune_counts &counts, const Json &plan) {
  counts.kernels = plan["kernels"].size();
  counts.stored = plan["devices"][0].value("stored", 0);
  counts.left = counts.kernels - counts.stored;
}

} // namespace

Result<std::string> tuneWorkload(Engine &engine, const char *text, const nsa_tune_options *given,
                                 nsa_tune_counts &counts) {
  NSA_RETURN_IF_ERROR(requirePointer(text, kWorkload));
  nsa_tune_options storage = nsa_init_sized<nsa_tune_options>();
  if (!given)
    given = &storage;
  NSA_RETURN_IF_ERROR(readStruct(given, storage, "options"));
  const nsa_tune_options &options = *given;
  NSA_RETURN_IF_ERROR(checkSeconds("budget_seconds", options.budget_seconds));
  NSA_RETURN_IF_ERROR(checkSeconds("kernel_seconds", options.kernel_seconds));
  NSA_RETURN_IF_ERROR(checkFlag("again", options.again));
  NSA_RETURN_IF_ERROR(checkFlag("dry_run", options.dry_run));
  Result<Workload> workload = Workload::parse(text, kWorkload);
  if (!workload)
    return workload.status();
  std::vector<Workload> workloads = {std::move(*workload)};
  NSA_RETURN_IF_ERROR(limitTo(namesOf(options.operators), workloads));
  NSA_RETURN_IF_ERROR(engine.checkTunes());
  Result<TuneEnvironment> environment = TuneEnvironment::of(engine.settings());
  if (!environment)
    return environment.status();
  Result<Json> report = Json();
  if (options.dry_run) {
    report = planWorkloads(workloads, *environment, {{engine.choiceKey(), engine.device().isGpu()}},
                           {.budgetSeconds = options.budget_seconds, .again = options.again == 1});
  } else {
    const auto tuneKernel = [&engine](const TuneJob &job, double budgetSeconds) {
      return engine.tuneKernel(job.spec, job.maxima, job.problem, budgetSeconds);
    };
    report = runWorkloads(workloads, *environment,
                          {{.name = engine.deviceName(),
                            .key = engine.choiceKey(),
                            .isGpu = engine.device().isGpu(),
                            .tuneKernel = tuneKernel}},
                          {.budgetSeconds = options.budget_seconds,
                           .kernelSeconds = options.kernel_seconds,
                           .again = options.again == 1,
                           .tell = callbackOf(options)});
  }
  if (!report)
    return report.status();
  options.dry_run ? fillPlanned(counts, *report) : fill(counts, *report);
  return report->dump();
}

} // namespace nsa::capi
