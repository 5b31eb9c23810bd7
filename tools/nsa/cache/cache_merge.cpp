// `nsa cache merge`: the choices of several files in one database.
#include "tools/nsa/cache/cache_verbs.h"

#include "cache/kernel_store.h"

#include <cstdio>
#include <filesystem>
#include <memory>

namespace nsa::tools {
namespace {

struct MergeFlags {
  std::string path;
  std::vector<std::string> sources, keys;
  Prefer prefer = Prefer::kDestination;
  bool json = false;
};

nlohmann::json reportOf(const std::string &source, const MergeReport &report) {
  nlohmann::json conflicts = nlohmann::json::array();
  for (const MergeConflict &conflict : report.conflicts)
    conflicts.push_back({{"key", conflict.key},
                         {"destination", conflict.destination},
                         {"source", conflict.source},
                         {"kept", conflict.tookSource ? "source" : "destination"}});
  return {
      {"source", source},
      {"kernels", report.kernels},
      {"choices", {{"added", report.addedChoices}, {"replaced", report.replacedChoices}, {"kept", report.keptChoices}}},
      {"routes", {{"added", report.addedRoutes}, {"replaced", report.replacedRoutes}, {"kept", report.keptRoutes}}},
      {"conflicts", conflicts},
      {"damaged", report.damaged},
      {"lost", report.lost}};
}

void print(const std::string &source, const MergeReport &report) {
  printText("%s: %s; choices: %lld added, %lld replaced, %lld kept; routes: %lld added, %lld replaced, %lld kept\n",
            source.c_str(), countText(report.kernels, "kernel").c_str(), static_cast<long long>(report.addedChoices),
            static_cast<long long>(report.replacedChoices), static_cast<long long>(report.keptChoices),
            static_cast<long long>(report.addedRoutes), static_cast<long long>(report.replacedRoutes),
            static_cast<long long>(report.keptRoutes));
  for (const MergeConflict &conflict : report.conflicts)
    printText("both measured: %s: %.12s here, %.12s there, kept %s\n", conflict.key.c_str(),
              conflict.destination.c_str(), conflict.source.c_str(), conflict.tookSource ? "there" : "here");
  for (const std::string &content : report.damaged)
    printText("left out: kernel %s, which is damaged\n", content.c_str());
  for (const std::string &content : report.lost)
    printText("gave way: the choice of kernel %s, which is damaged or missing here\n", content.c_str());
}

Status merge(const MergeFlags &flags) {
  NSA_ASSIGN_OR_RETURN(std::string path, cachePathOf(flags.path));
  NSA_ASSIGN_OR_RETURN(const SignatureRules rules, signatureRulesOf(flags.keys));
  // What is merged outranks every pack. Before anything is made or changed: all sources must be readable.
  std::vector<CacheFile> sources;
  for (const std::string &source : flags.sources) {
    std::error_code error;
    if (std::filesystem::equivalent(source, path, error))
      return Status::invalid("FILE", source, "must not be the database that it is merged into");
    NSA_ASSIGN_OR_RETURN(
        CacheFile file, openToTake(source, rules, rules.requireSignature ? Databases::kRefused : Databases::kAccepted));
    sources.push_back(std::move(file));
  }
  std::string warning;
  NSA_ASSIGN_OR_RETURN(std::unique_ptr<KernelStore> store, KernelStore::open({.path = path}, warning));
  if (store->path() == ":memory:" || store->isReadOnly())
    return Status::error(ErrorCode::kIoError,
                         warning.empty() ? "'" + path + "' keeps nothing: name a database with --cache" : warning);
  if (!warning.empty())
    printWarning(warning);
  nlohmann::json reports = nlohmann::json::array();
  for (CacheFile &source : sources) {
    NSA_ASSIGN_OR_RETURN(MergeReport report, store->merge(source, flags.prefer));
    reports.push_back(reportOf(source.path(), report));
    if (!flags.json)
      print(source.path(), report);
  }
  if (flags.json)
    printJson({{"path", path}, {"sources", reports}});
  return Status::ok();
}

} // namespace

void addCacheMerge(CLI::App &cache, Action &action) {
  auto [verb, flags] =
      addVerb<MergeFlags>(cache, action, "merge", "Take the choices of databases and packs into one database", merge);
  verb.add_option("FILE", flags.sources, "Databases or packs, taken in this order")->required();
  addCacheFlag(verb, flags.path);
  addKeyFlag(verb, flags.keys);
  addOption(verb, "--prefer SIDE", flags.prefer,
            "Of two measured choices for one problem: destination (the default) keeps the database's, source takes "
            "the file's. A measured one always beats one that is not")
      ->transform(namedValue<Prefer>({{"destination", Prefer::kDestination}, {"source", Prefer::kSource}}));
  addJsonFlag(verb, flags.json);
}

} // namespace nsa::tools
