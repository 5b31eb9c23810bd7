// The verbs of `nsa cache`, which list, copy, ship and clean up kernel databases and packs. Each function adds one verb
// to the given parent command.
// Thread-safety: one thread.
#pragma once

#include "cache/verification.h"
#include "tools/nsa/command/command.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace nsa::tools {

void addCacheList(CLI::App &cache, Action &action);
void addCacheShow(CLI::App &cache, Action &action);
void addCacheStats(CLI::App &cache, Action &action);
void addCacheExport(CLI::App &cache, Action &action);
void addCacheMerge(CLI::App &cache, Action &action);
void addCacheRenew(CLI::App &cache, Action &action);
void addCacheVerify(CLI::App &cache, Action &action);
void addCacheDiff(CLI::App &cache, Action &action);
void addCacheGc(CLI::App &cache, Action &action);
void addCacheKeygen(CLI::App &cache, Action &action);
void addCacheSign(CLI::App &cache, Action &action);

// What --cache names to a verb that reads (addCacheFlag).
inline constexpr const char *kDatabaseOrPack = "Database of kernels, or a pack";

// FileFlags has the values of the options --cache and --json.
struct FileFlags {
  std::string path;
  bool json = false;

  void add(CLI::App &verb, const std::string &what) {
    addCacheFlag(verb, path, what);
    addJsonFlag(verb, json);
  }
};

// Adds the option --key, which names public keys, to a verb that copies rows from packs or verifies packs.
void addKeyFlag(CLI::App &verb, std::vector<std::string> &keys);
// Returns the rules for signatures of packs: a pack must be signed with one of the keys in `keys`. If `keys` is empty,
// the rules come from the environment variables NSA_CACHE_KEYS and NSA_REQUIRE_SIGNATURE, which an engine reads as
// well.
Result<SignatureRules> signatureRulesOf(const std::vector<std::string> &keys);
// Calls openSource (cache/verification.h) to open a file from which rows are copied. Also prints a warning on stderr if
// there are trusted keys and none of them has signed the pack.
Result<CacheFile> openToTake(const std::string &path, const SignatureRules &rules, Databases databases);

// Returns the given path, or the path of the default database when the given path is empty.
Result<std::string> cachePathOf(const std::string &chosen);
// Opens the file at that path. An empty database holds nothing, and is no error.
Result<CacheFile> openCache(const std::string &chosen);

nlohmann::json toJson(const KernelSummary &kernel);
nlohmann::json toJson(const StoredChoice &choice);
nlohmann::json toJson(const StoredRoute &route);
// "1.2 MiB", "300 bytes".
std::string bytesText(int64_t bytes);
// "3 kernels", "1 kernel".
std::string countText(int64_t count, const std::string &noun);

} // namespace nsa::tools
