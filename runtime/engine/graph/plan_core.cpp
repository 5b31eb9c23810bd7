#include "runtime/engine/graph/plan_core.h"

#include <algorithm>

namespace nsa {

std::string_view planSourceName(PlanSource source) {
  constexpr std::string_view kNames[] = {"memory", "database", "pack", "compiled"};
  return kNames[static_cast<int>(source)];
}

PlanCore::PlanCore(std::vector<Part> given) : parts(std::move(given)) {
  for (const Part &part : parts) {
    kernels[static_cast<size_t>(part.step.role)] = part.kernel->kernel.get();
    launches.push_back({part.kernel->kernel.get(), part.step.node, part.step.arguments});
    source = std::max(source, part.kernel->source);
    keySplits = std::max(keySplits, part.step.spec.keySplits);
    routes |= part.step.route;
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

} // namespace nsa
