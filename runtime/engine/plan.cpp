#include "runtime/engine/plan.h"

#include "runtime/base/device_status.h"
#include "runtime/engine/describe.h"
#include "runtime/engine/engine.h"

#include <algorithm>

namespace nsa {

std::string_view planSourceName(PlanSource source) {
  constexpr std::string_view kNames[] = {"memory", "database", "compiled"};
  return kNames[static_cast<int>(source)];
}

PlanCore::PlanCore(std::vector<Part> given) : parts(std::move(given)) {
  for (const Part &part : parts) {
    kernels[static_cast<size_t>(part.step.role)] = part.kernel->kernel.get();
    source = std::max(source, part.kernel->source);
  }
}

Status PlanCore::checkGrids(const Spec &spec, const Maxima &maxima) const {
  const GridSizes sizes = GridSizes::ofMaxima(spec, maxima);
  for (const Part &part : parts) {
    int32_t grid[3];
    NSA_RETURN_IF_ERROR(part.kernel->kernel->grid(sizes, grid));
  }
  return Status::ok();
}

Plan::~Plan() { delete description.load(); }

Status Plan::run(const Bindings &bindings, void *workspace, size_t workspaceBytes, void *stream) const {
  engine->countRun();
  Call call;
  NSA_RETURN_IF_ERROR(prepareCall(rules, bindings, call));
  const size_t needed = layout.bytes;
  if (workspaceBytes < needed || (needed != 0 && !workspace))
    return Status::invalid("workspace_bytes", std::to_string(workspace ? workspaceBytes : 0),
                           "must be at least " + std::to_string(needed), "ask nsa_plan_workspace_size");
  if (reinterpret_cast<uintptr_t>(workspace) % kWorkspaceAlignment != 0)
    return Status::invalid("workspace", std::to_string(reinterpret_cast<uintptr_t>(workspace)),
                           "must be a multiple of " + std::to_string(kWorkspaceAlignment) + " bytes");
  auto launch = [&](const void *word) {
    return PipelineRun{rules, core->kernels, layout, call, static_cast<std::byte *>(workspace), word, stream}.run();
  };
  if (engine->device().isGpu())
    return call.empty ? Status::ok() : launch(statusWord);

  NSA_RETURN_IF_ERROR(checkHostLengths(rules, call));
  if (call.empty)
    return Status::ok();
  int32_t word[kDeviceStatusWords] = {};
  NSA_RETURN_IF_ERROR(launch(word));
  // Kernels check again what the host has checked: another thread may have changed the lengths meanwhile. And they see
  // what the host does not look through, such as lists.
  return deviceStatus(word[0], word[1]);
}

Status Plan::status(void *stream) { return engine->device().readStatusWord(statusWord, stream); }

const std::string &Plan::describe() const {
  const std::string *found = description.load(std::memory_order_acquire);
  if (found)
    return *found;
  auto composed = std::make_unique<const std::string>(
      describePlan({*core, rules.spec, rules.maxima, source, engine->device().key(), layout.bytes}));
  if (description.compare_exchange_strong(found, composed.get()))
    return *composed.release();
  return *found; // another thread was faster
}

void Plan::giveBack(Plan *plan) { plan->engine->takeBack(plan); }

} // namespace nsa
