#include "runtime/engine/plan.h"

#include "runtime/base/device_status.h"
#include "runtime/engine/describe.h"
#include "runtime/engine/engine.h"

namespace nsa {

std::string_view planSourceName(PlanSource source) {
  constexpr std::string_view kNames[] = {"memory", "database", "compiled"};
  return kNames[static_cast<int>(source)];
}

Status PlanCore::run(const Device &device, const Bindings &bindings, void *statusWord, void *workspace,
                     size_t workspaceBytes, void *stream) const {
  Call call;
  NSA_RETURN_IF_ERROR(prepareCall(spec, maxima, bindings, call));
  size_t needed = kernel->workspaceBytes();
  if (workspaceBytes < needed || (needed != 0 && !workspace))
    return Status::invalid("workspace_bytes", std::to_string(workspace ? workspaceBytes : 0),
                           "must be at least " + std::to_string(needed), "ask nsa_plan_workspace_size");
  if (reinterpret_cast<uintptr_t>(workspace) % kWorkspaceAlignment != 0)
    return Status::invalid("workspace", std::to_string(reinterpret_cast<uintptr_t>(workspace)),
                           "must be a multiple of " + std::to_string(kWorkspaceAlignment) + " bytes");
  if (device.isGpu())
    return call.empty ? Status::ok() : kernel->launch(call, statusWord, workspace, stream);

  NSA_RETURN_IF_ERROR(checkHostLengths(spec, maxima, call));
  if (call.empty)
    return Status::ok();
  int32_t word[kDeviceStatusWords] = {};
  NSA_RETURN_IF_ERROR(kernel->launch(call, word, workspace, stream));
  // The kernel checks again what the host has checked: another thread may have changed the lengths meanwhile.
  return deviceStatus(word[0], word[1]);
}

Result<std::unique_ptr<Plan>> Plan::make(std::shared_ptr<Engine> engine, std::shared_ptr<const PlanCore> core,
                                         PlanSource source, PlanTimes times) {
  std::unique_ptr<Plan> plan(new Plan(std::move(engine), std::move(core), source, times));
  Result<void *> word = plan->engine->device().acquireStatusWord();
  if (!word)
    return word.status();
  plan->statusWord = *word;
  return plan;
}

Plan::~Plan() {
  if (statusWord)
    engine->device().releaseStatusWord(statusWord);
}

Status Plan::run(const Bindings &bindings, void *workspace, size_t workspaceBytes, void *stream) const {
  engine->countRun();
  return core->run(engine->device(), bindings, statusWord, workspace, workspaceBytes, stream);
}

Status Plan::status(void *stream) { return engine->device().readStatusWord(statusWord, stream); }

const std::string &Plan::describe() const {
  std::call_once(described, [this] { description = describePlan(*core, source, times, engine->device().key()); });
  return description;
}

} // namespace nsa
