#include "tools/nsa/cache/cache_verbs.h"

#include "runtime/engine/options/cache_settings.h"
#include "runtime/engine/options/options.h"
#include "runtime/engine/report/timed_shape.h"

#include <cstdio>

namespace nsa::tools {

void addKeyFlag(CLI::App &verb, std::vector<std::string> &keys) {
  addOption(verb, "--key FILE", keys,
            "Public key, one of which must have signed a pack; may be repeated (default: NSA_CACHE_KEYS)")
      ->allow_extra_args(false); // repeated: what follows is another file
}

Result<SignatureRules> signatureRulesOf(const std::vector<std::string> &keys) {
  std::vector<std::string> warnings;
  if (!keys.empty())
    return readSignatureRules(true, keys, warnings);
  nsa::EngineOptions options;
  NSA_RETURN_IF_ERROR(options.resolve(nsa::EngineOptions::processEnvironment()));
  NSA_ASSIGN_OR_RETURN(CacheSettings settings, settingsOf(options, warnings));
  for (const std::string &warning : warnings)
    printWarning(warning);
  return std::move(settings.signatures);
}

Result<CacheFile> openToTake(const std::string &path, const SignatureRules &rules, Databases databases) {
  Result<CacheFile> file = openSource(path, rules, databases);
  if (file && !file->warning().empty())
    printWarning(file->warning());
  return file;
}

Result<std::string> cachePathOf(const std::string &chosen) {
  nsa::EngineOptions options;
  options.cachePath = chosen;
  NSA_RETURN_IF_ERROR(options.resolve(nsa::EngineOptions::processEnvironment()));
  return options.cachePath;
}

Result<CacheFile> openCache(const std::string &chosen) {
  NSA_ASSIGN_OR_RETURN(const std::string path, cachePathOf(chosen));
  return CacheFile::open(path, CacheFile::Check::kRows, CacheFile::Empty::kAccepted);
}

nlohmann::json toJson(const KernelSummary &kernel) {
  return {{"key", kernel.content},
          {"template", kernel.templateName},
          {"op", kernel.op},
          {"target", kernel.target},
          {"config", kernel.config},
          {"compressed_bytes", kernel.compressedBytes},
          {"binary_bytes", kernel.binaryBytes}};
}

nlohmann::json toJson(const StoredChoice &choice) {
  nlohmann::json evidence = nlohmann::json::array();
  for (const Measurement &measurement : choice.evidence)
    evidence.push_back({{"template", measurement.templateName},
                        {"config", measurement.config},
                        {"outcome", measurement.outcome},
                        {"milliseconds", measurement.milliseconds},
                        {"ratio", measurement.ratioToIncumbent},
                        {"detail", measurement.detail}});
  return {{"problem", choice.problem},
          {"device", choice.device},
          {"kernel", choice.content},
          {"tuned", choice.tuned},
          {"cut", cutTextOf(choice.provenance)},
          {"provenance", choice.provenance},
          {"evidence", evidence}};
}

nlohmann::json toJson(const StoredRoute &route) {
  nlohmann::json evidence = nlohmann::json::array();
  for (const RouteMeasurement &measurement : route.evidence)
    evidence.push_back({{"size", measurement.size},
                        {"variant", measurement.variant},
                        {"milliseconds", measurement.milliseconds},
                        {"ratio", measurement.ratio},
                        {"detail", measurement.detail}});
  nlohmann::json threshold = route.threshold;
  if (route.threshold == StoredRoute::kNever)
    threshold = "never";
  return {{"family", route.family}, {"device", route.device},         {"name", route.name},
          {"threshold", threshold}, {"provenance", route.provenance}, {"evidence", evidence}};
}

std::string bytesText(int64_t bytes) {
  constexpr double kKiB = 1024, kMiB = 1024 * kKiB;
  const auto size = static_cast<double>(bytes);
  if (size < 10 * kKiB)
    return std::to_string(bytes) + " bytes";
  return size < kMiB ? formatNumber("%.0f KiB", size / kKiB) : formatNumber("%.1f MiB", size / kMiB);
}

std::string countText(int64_t count, const std::string &noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

void addCacheCommand(CLI::App &app, Action &action) {
  CLI::App *command = app.add_subcommand("cache", "Look into files of kernels, ship them, clean them up");
  command->require_subcommand(1);
  for (const auto add : {addCacheList, addCacheShow, addCacheStats, addCacheVerify, addCacheDiff, addCacheExport,
                         addCacheMerge, addCacheRenew, addCacheGc, addCacheKeygen, addCacheSign})
    add(*command, action);
}

} // namespace nsa::tools
