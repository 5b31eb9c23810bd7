#include "cache/pack/pack_index.h"

namespace nsa {

namespace {

template <typename Map, typename Key> const typename Map::mapped_type *valueOf(const Map &map, const Key &key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

} // namespace

void PackIndex::addKernel(std::string content, Kernel kernel) { kernels[std::move(content)] = std::move(kernel); }

void PackIndex::addChoice(StoredChoice choice) {
  std::pair key(choice.problem, choice.device);
  choices[std::move(key)] = std::move(choice);
}

void PackIndex::addRoute(StoredRoute route) {
  std::tuple key(route.family, route.device, route.name);
  routes[std::move(key)] = std::move(route);
}

const PackIndex::Kernel *PackIndex::kernel(const std::string &content) const { return valueOf(kernels, content); }

const StoredChoice *PackIndex::choice(const std::string &problem, const std::string &device) const {
  return valueOf(choices, std::pair(problem, device));
}

const StoredRoute *PackIndex::route(const std::string &family, const std::string &device,
                                    const std::string &name) const {
  return valueOf(routes, std::tuple(family, device, name));
}

void PackIndex::summarizeChoices(const std::string &op, int layer, std::vector<ChoiceSummary> &summaries) const {
  const std::string first = op + " "; // a problem's first word is its operator
  for (auto found = choices.lower_bound({first, ""}); found != choices.end(); ++found) {
    const StoredChoice &choice = found->second;
    if (!choice.problem.starts_with(first))
      break;
    if (const Kernel *named = kernel(choice.content))
      summaries.push_back({choice.problem, choice.device, choice.content, choice.tuned, named->target,
                           named->templateName, named->config, layer, named->digest});
  }
}

std::vector<StoredRoute> PackIndex::listRoutes() const {
  std::vector<StoredRoute> list;
  for (const auto &[key, route] : routes)
    list.push_back(route);
  return list;
}

} // namespace nsa
