#include "tools/nsa/stored_choices.h"

#include <algorithm>
#include <set>

namespace nsa::tools {

std::string revisionOf(const StoredChoice &choice) {
  constexpr std::string_view kKey = "compiler=";
  const size_t at = choice.provenance.find(kKey);
  if (at == std::string::npos)
    return "";
  const size_t begin = at + kKey.size();
  return choice.provenance.substr(begin, choice.provenance.find(' ', begin) - begin);
}

bool wasMeasured(const StoredChoice &choice) {
  return choice.tuned && std::ranges::any_of(choice.evidence, [](const Measurement &entry) {
           return entry.outcome == "winner" && entry.milliseconds > 0;
         });
}

Result<StoredChoices> StoredChoices::open(const std::string &cachePath, Access access) {
  std::string warning;
  Result<std::unique_ptr<KernelStore>> store =
      KernelStore::open({.path = cachePath, .readOnly = access == Access::kRead}, warning);
  if (!store)
    return store.status();
  return StoredChoices(std::move(*store));
}

std::optional<StoredChoice> StoredChoices::find(const TuneJob &job, const std::string &device,
                                                const std::string &revision) {
  Result<std::optional<StoredChoice>> choice = store->findChoice(job.problem, device);
  if (!choice || !*choice || revisionOf(**choice) != revision || (job.isTuned && !wasMeasured(**choice)))
    return std::nullopt;
  // Damaged rows count as absent.
  Result<std::optional<StoredKernel>> kernel = store->findKernel((*choice)->content);
  return kernel && *kernel ? std::move(*choice) : std::nullopt;
}

Status StoredChoices::copy(const TuneJob &from, const TuneJob &to, const std::string &device) {
  Result<std::optional<StoredChoice>> choice = store->findChoice(from.problem, device);
  if (!choice)
    return choice.status();
  Result<std::optional<StoredKernel>> kernel = std::optional<StoredKernel>();
  if (*choice)
    kernel = store->findKernel((*choice)->content);
  if (!kernel)
    return kernel.status();
  if (!*kernel)
    return Status::error(ErrorCode::kIoError, "the kernel of '" + from.problem + "' is not in the database");
  (*choice)->problem = to.problem;
  return store->put(**kernel, &**choice);
}

std::vector<StoredRoute> StoredChoices::routesOf(const std::string &device) {
  Result<std::vector<StoredRoute>> routes = store->listRoutes();
  if (!routes)
    return {};
  std::erase_if(*routes, [&](const StoredRoute &route) { return route.device != device; });
  return std::move(*routes);
}

std::vector<std::string> StoredChoices::devicesOf(const std::string &target) {
  Result<std::vector<KernelSummary>> kernels = store->listKernels();
  Result<std::vector<StoredChoice>> choices = store->listChoices();
  if (!kernels || !choices)
    return {};
  std::set<std::string> contents, devices;
  for (const KernelSummary &kernel : *kernels)
    if (kernel.target == target)
      contents.insert(kernel.content);
  for (const StoredChoice &choice : *choices)
    if (contents.contains(choice.content))
      devices.insert(choice.device);
  return {devices.begin(), devices.end()};
}

} // namespace nsa::tools
