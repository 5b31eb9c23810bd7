// `nsa cache list|show`: what a database or a pack holds. Reads only, and says so when there is no file.
#include "runtime/engine/choices/routes.h"
#include "runtime/engine/report/timed_shape.h"
#include "tools/nsa/cache/cache_verbs.h"

namespace nsa::tools {
namespace {

struct ShowFlags : FileFlags {
  std::string key;
};

std::string thresholdText(const StoredRoute &route) {
  if (route.threshold == StoredRoute::kNever)
    return "never";
  const std::string number = std::to_string(route.threshold);
  if (route.name.starts_with(kSplitsRoute))
    return route.threshold == kTakesStep ? std::string(kStepVariant) : number + " splits";
  return (route.name.ends_with("up_to") ? "up to " : "from ") + number;
}

// " (64 of 1024 queries timed)"
std::string cutOf(const StoredChoice &choice) {
  const std::string cut = cutTextOf(choice.provenance);
  return cut.empty() ? "" : " (" + cut + ")";
}

Status list(const FileFlags &flags) {
  NSA_ASSIGN_OR_RETURN(CacheFile file, openCache(flags.path));
  NSA_ASSIGN_OR_RETURN(std::vector<KernelSummary> kernels, file.kernels());
  NSA_ASSIGN_OR_RETURN(std::vector<StoredChoice> choices, file.choices());
  NSA_ASSIGN_OR_RETURN(std::vector<StoredRoute> routes, file.routes());

  if (flags.json) {
    nlohmann::json kernelList = nlohmann::json::array(), choiceList = kernelList, routeList = kernelList;
    for (const KernelSummary &kernel : kernels)
      kernelList.push_back(toJson(kernel));
    for (const StoredChoice &choice : choices)
      choiceList.push_back(toJson(choice));
    for (const StoredRoute &route : routes)
      routeList.push_back(toJson(route));
    printJson({{"path", file.path()}, {"kernels", kernelList}, {"choices", choiceList}, {"routes", routeList}});
    return Status::ok();
  }
  printText("%s: %zu kernels, %zu choices, %zu routes\n", file.path().c_str(), kernels.size(), choices.size(),
            routes.size());
  for (const KernelSummary &kernel : kernels)
    printText("kernel %.12s  %-8s %-8s %-16s %s  (%lld bytes, %lld stored)\n", kernel.content.c_str(),
              kernel.target.c_str(), kernel.op.c_str(), kernel.templateName.c_str(), kernel.config.c_str(),
              static_cast<long long>(kernel.binaryBytes), static_cast<long long>(kernel.compressedBytes));
  for (const StoredChoice &choice : choices)
    printText("choice %.12s  %s  %s  [%s]%s\n", choice.content.c_str(), choice.tuned ? "tuned  " : "default",
              choice.problem.c_str(), choice.device.c_str(), cutOf(choice).c_str());
  for (const StoredRoute &route : routes)
    printText("route  %s %s  %s  [%s]\n", route.name.c_str(), thresholdText(route).c_str(), route.family.c_str(),
              route.device.c_str());
  return Status::ok();
}

void printEvidence(const StoredChoice &choice) {
  printText("\nchosen for %s\non %s, %s%s; %s\n", choice.problem.c_str(), choice.device.c_str(),
            choice.tuned ? "measured" : "not measured", cutOf(choice).c_str(), choice.provenance.c_str());
  for (const Measurement &measurement : choice.evidence) {
    if (measurement.outcome == "pruned")
      continue;
    const std::string time = measurement.milliseconds > 0 ? millisecondsText(measurement.milliseconds) : "-";
    printText("  %-8s %12s  %s %s%s%s\n", measurement.outcome.c_str(), time.c_str(), measurement.templateName.c_str(),
              measurement.config.c_str(), measurement.detail.empty() ? "" : ": ", measurement.detail.c_str());
  }
  printText("%s", prunedText(toJson(choice)["evidence"]).c_str());
}

// The content that `key` begins, if it is exactly one.
Result<std::string> uniqueContent(CacheFile &file, const std::string &key) {
  NSA_ASSIGN_OR_RETURN(std::vector<KernelSummary> kernels, file.kernels());
  std::vector<std::string> matches;
  for (const KernelSummary &kernel : kernels)
    if (kernel.content.starts_with(key))
      matches.push_back(kernel.content);
  if (matches.size() == 1)
    return matches.front();
  return Status::invalid("KEY", key,
                         matches.empty()
                             ? "must begin the key of a stored kernel"
                             : "begins the keys of " + std::to_string(matches.size()) + " kernels: give more of it",
                         "`nsa cache list` shows the keys");
}

Status show(const ShowFlags &flags) {
  NSA_ASSIGN_OR_RETURN(CacheFile file, openCache(flags.path));
  NSA_ASSIGN_OR_RETURN(std::string content, uniqueContent(file, flags.key));
  NSA_ASSIGN_OR_RETURN(std::optional<StoredKernel> kernel, file.kernel(content));
  if (!kernel)
    return Status::error(ErrorCode::kIoError, "kernel " + content + " was removed a moment ago");
  NSA_ASSIGN_OR_RETURN(std::vector<StoredChoice> choices, file.choices());

  if (flags.json) {
    nlohmann::json choiceList = nlohmann::json::array();
    for (const StoredChoice &choice : choices)
      if (choice.content == content)
        choiceList.push_back(toJson(choice));
    printJson({{"key", content},
               {"manifest", kernel->manifest},
               {"binary_bytes", kernel->binary.size()},
               {"choices", choiceList}});
    return Status::ok();
  }
  printText("kernel %s, %zu bytes\n\n%s", content.c_str(), kernel->binary.size(), kernel->manifest.c_str());
  for (const StoredChoice &choice : choices)
    if (choice.content == content)
      printEvidence(choice);
  return Status::ok();
}

} // namespace

void addCacheList(CLI::App &cache, Action &action) {
  auto [verb, flags] = addVerb<FileFlags>(
      cache, action, "list",
      "The stored kernels, which problem on which device chose which, and the measured thresholds", list);
  flags.add(verb, kDatabaseOrPack);
}

void addCacheShow(CLI::App &cache, Action &action) {
  auto [verb, flags] =
      addVerb<ShowFlags>(cache, action, "show", "One kernel: manifest, and the measurements behind its choice", show);
  verb.add_option("KEY", flags.key, "The kernel's key or its first digits")->required();
  flags.add(verb, kDatabaseOrPack);
}

} // namespace nsa::tools
