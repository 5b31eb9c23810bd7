#include "runtime/engine/graph/plan_core.h"

#include <algorithm>

namespace nsa {

std::string_view planSourceName(PlanSource source) {
  constexpr std::string_view kNames[] = {"memory", "database", "pack", "compiled"};
  return kNames[static_cast<int>(source)];
}

Result<std::shared_ptr<const PlanCore>> PlanCore::make(std::vector<Part> parts) {
  auto core = std::make_shared<PlanCore>();
  for (const Part &part : parts) {
    const LoadedKernel &kernel = *part.kernel->kernel;
    NSA_RETURN_IF_ERROR(checkTypes(part.step, kernel));
    core->scratchBytes = std::max(core->scratchBytes, kernel.workspaceBytes());
    core->launches.push_back({&kernel, part.step.node, part.step.arguments});
    core->source = std::max(core->source, part.kernel->source);
    core->keySplits = std::max(core->keySplits, part.step.spec.keySplits);
    core->dqSlots |= part.step.spec.dqSlots;
    core->decodeStep |= part.step.role == Role::kStep;
    core->routes |= part.step.route;
  }
  core->parts = std::move(parts);
  return std::shared_ptr<const PlanCore>(std::move(core));
}

Status PlanCore::checkGrids(const Spec &spec, const Maxima &maxima) const {
  const GridSizes sizes = GridSizes::ofMaxima(spec, maxima);
  for (const Part &part : parts) {
    int32_t grid[3];
    NSA_RETURN_IF_ERROR(part.kernel->kernel->grid({sizes}, grid));
  }
  return Status::ok();
}

} // namespace nsa
