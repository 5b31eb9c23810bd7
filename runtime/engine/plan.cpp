#include "runtime/engine/plan.h"

#include "runtime/base/device_status.h"
#include "runtime/base/text.h"
#include "runtime/engine/call/host_lengths.h"
#include "runtime/engine/call/host_lists.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/graph/comparison.h"
#include "runtime/engine/report/describe.h"
#include "runtime/engine/report/profiler_range.h"

#include <algorithm>

namespace nsa {

Status checkWorkspace(const void *workspace, size_t bytes, size_t needed) {
  if (bytes < needed)
    return Status::invalid("workspace_bytes", std::to_string(bytes), "must be at least " + std::to_string(needed),
                           "ask nsa_plan_workspace_size, or nsa_program_workspace_size for a program");
  if (needed != 0 && !workspace)
    return Status::invalid("workspace", "null", "must point to " + std::to_string(needed) + " bytes");
  if (reinterpret_cast<uintptr_t>(workspace) % kWorkspaceAlignment != 0)
    return Status::invalid("workspace", addressText(workspace),
                           "must be a multiple of " + std::to_string(kWorkspaceAlignment) + " bytes");
  return Status::ok();
}

Plan::Plan() = default;
Plan::~Plan() { delete description.load(); }

Status Plan::checkNotCapturing(void *stream, const char *rule, const char *hint) const {
  NSA_ASSIGN_OR_RETURN(bool capturing, engine->device().isCapturing(stream));
  if (!capturing)
    return Status::ok();
  return Status(
      ErrorInfo{.code = ErrorCode::kCapturing, .field = "stream", .value = "capturing", .rule = rule, .hint = hint});
}

Result<std::vector<ComparedPart>> Plan::compared() const {
  if (!comparison)
    return Status::invalid("plan", "one that does not compare", "must be made with nsa_plan_options.compare = 1");
  std::lock_guard lock(comparison->mutex);
  if (!comparison->parts)
    return Status::invalid("plan", "never run", "must have run before it is asked what it found");
  return *comparison->parts;
}

Result<std::string> Plan::comparisonReport() const {
  Result<std::vector<ComparedPart>> parts = compared();
  return parts ? describeComparison("operator", operatorName(rules.spec.op), *parts)
               : Result<std::string>(parts.status());
}

Result<std::vector<Plan::PartTime>> Plan::runTimed(const Bindings &bindings, void *workspace, size_t workspaceBytes,
                                                   void *stream) const {
  NSA_RETURN_IF_ERROR(checkNotCapturing(stream, "a timed run waits for its kernels, and a captured one does not run",
                                        "time the plan outside of the capture"));
  const std::unique_ptr<LaunchClock> clock = engine->device().makeClock();
  LaunchTrace trace{*clock};
  NSA_RETURN_IF_ERROR(run(bindings, workspace, workspaceBytes, stream, &trace));
  NSA_ASSIGN_OR_RETURN(std::vector<double> spans, clock->spans());
  std::vector<PartTime> times;
  for (size_t i = 0; i < trace.launched.size(); ++i) {
    const std::string_view name = roleName(trace.launched[i], rules.spec.op);
    auto part = std::find_if(times.begin(), times.end(), [&](const PartTime &time) { return time.name == name; });
    if (part == times.end())
      part = times.insert(times.end(), {name});
    ++part->launches;
    part->milliseconds += spans[i];
  }
  return times;
}

Status Plan::run(const Bindings &bindings, void *workspace, size_t workspaceBytes, void *stream,
                 LaunchTrace *trace) const {
  const ProfilerRange range("nsa run");
  engine->countRun();
  Call call;
  NSA_RETURN_IF_ERROR(prepareCall(rules, bindings, call));
  if (gates.data)
    call.tensors[static_cast<size_t>(TensorName::kGates)] = gates;
  NSA_RETURN_IF_ERROR(checkWorkspace(workspace, workspaceBytes, layout.bytes));
  auto *memory = static_cast<std::byte *>(workspace);
  auto launch = [&](const void *word) -> Status {
    if (!comparison)
      return PipelineRun{rules, core->launches, core->routes, layout, call, memory, word, stream, trace}.run();
    Comparison found(engine->device(), rules, layout, *comparison->definitions, memory);
    const PipelineRun comparing{rules, core->launches, core->routes, layout,  call,  memory,
                                word,  stream,         trace,        nullptr, &found};
    NSA_RETURN_IF_ERROR(comparing.run());
    std::vector<ComparedPart> parts = found.parts();
    std::lock_guard lock(comparison->mutex);
    comparison->parts = std::move(parts);
    return Status::ok();
  };
  if (comparison)
    NSA_RETURN_IF_ERROR(checkNotCapturing(stream,
                                          "a run that compares waits for its kernels, and a captured one does "
                                          "not run",
                                          "compare outside of the capture, or make the plan without `compare`"));
  if (engine->device().isGpu())
    return call.empty ? Status::ok() : launch(statusWord);

  NSA_RETURN_IF_ERROR(checkHostLengths(rules, call));
  if (call.empty)
    return Status::ok();
  int32_t word[kDeviceStatusWords] = {};
  NSA_RETURN_IF_ERROR(launch(word));
  // Kernels check again what the host has checked: another thread may have changed the lengths meanwhile. Lists and
  // their inverse are looked through only when a kernel has found a bad one.
  if (word[0] == static_cast<int32_t>(DeviceStatusCode::kMalformedList))
    NSA_RETURN_IF_ERROR(findMalformedList(rules, call));
  if (word[0] == static_cast<int32_t>(DeviceStatusCode::kWrongIndex))
    NSA_RETURN_IF_ERROR(findWrongIndex(rules, call));
  return deviceStatus({word[0], word[1]});
}

Status Plan::status(void *stream) const {
  NSA_ASSIGN_OR_RETURN(const DeviceReport report, engine->device().readStatusWord(statusWord, stream));
  return deviceStatus(report);
}

PlanDescription Plan::facts() const {
  return {*core, rules.spec, rules.maxima, source, engine->device().key(), layout.bytes};
}

const std::string &Plan::describe() const {
  const std::string *found = description.load(std::memory_order_acquire);
  if (found)
    return *found;
  auto composed = std::make_unique<const std::string>(describePlan(facts()));
  if (description.compare_exchange_strong(found, composed.get()))
    return *composed.release();
  return *found; // another thread was faster
}

PlanInfo Plan::info() const { return infoOf(facts()); }

std::vector<LaunchInfo> Plan::launches() const { return launchesOf(facts()); }

void Plan::giveBack(Plan *plan) { plan->engine->takeBack(plan); }

} // namespace nsa
