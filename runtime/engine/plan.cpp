#include "runtime/engine/plan.h"

#include "runtime/base/device_status.h"
#include "runtime/engine/describe.h"
#include "runtime/engine/engine.h"

namespace nsa {

std::string_view planSourceName(PlanSource source) {
  constexpr std::string_view kNames[] = {"memory", "database", "compiled"};
  return kNames[static_cast<int>(source)];
}

Status runKernel(const LoadedKernel &kernel, const CallRules &rules, const Device &device, const Bindings &bindings,
                 int32_t *statusWord, void *workspace, size_t workspaceBytes, void *stream) {
  Call call;
  NSA_RETURN_IF_ERROR(prepareCall(rules, bindings, call));
  size_t needed = kernel.workspaceBytes();
  if (workspaceBytes < needed || (needed != 0 && !workspace))
    return Status::invalid("workspace_bytes", std::to_string(workspace ? workspaceBytes : 0),
                           "must be at least " + std::to_string(needed), "ask nsa_plan_workspace_size");
  if (reinterpret_cast<uintptr_t>(workspace) % kWorkspaceAlignment != 0)
    return Status::invalid("workspace", std::to_string(reinterpret_cast<uintptr_t>(workspace)),
                           "must be a multiple of " + std::to_string(kWorkspaceAlignment) + " bytes");
  if (device.isGpu())
    return call.empty ? Status::ok() : kernel.launch(call, statusWord, workspace, stream);

  NSA_RETURN_IF_ERROR(checkHostLengths(rules, call));
  if (call.empty)
    return Status::ok();
  int32_t word[kDeviceStatusWords] = {};
  NSA_RETURN_IF_ERROR(kernel.launch(call, word, workspace, stream));
  // The kernel checks again what the host has checked: another thread may have changed the lengths meanwhile.
  return deviceStatus(word[0], word[1]);
}

Plan::~Plan() { delete description.load(); }

Status Plan::run(const Bindings &bindings, void *workspace, size_t workspaceBytes, void *stream) const {
  engine->countRun();
  return runKernel(*core->kernel, rules, engine->device(), bindings, statusWord, workspace, workspaceBytes, stream);
}

Status Plan::status(void *stream) { return engine->device().readStatusWord(statusWord, stream); }

const std::string &Plan::describe() const {
  const std::string *found = description.load(std::memory_order_acquire);
  if (found)
    return *found;
  auto composed = std::make_unique<const std::string>(
      describePlan(*core, rules.spec, rules.maxima, source, engine->device().key()));
  if (description.compare_exchange_strong(found, composed.get()))
    return *composed.release();
  return *found; // another thread was faster
}

void Plan::giveBack(Plan *plan) { plan->engine->takeBack(plan); }

} // namespace nsa
