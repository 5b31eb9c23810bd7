// The verbs of `nsa cache`, which show, ship and clean up files of kernels. Each function adds its verb to the parent.
// Thread-safety: one thread.
#pragma once

#include "cache/verification.h"
#include "tools/nsa/command.h"

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

// Adds --cache to verbs that look into a database or a pack, or (kWrites) change a database.
enum class CacheUse { kReads, kWrites };
void addCacheFlag(CLI::App &verb, std::string &path, CacheUse use);
void addJsonFlag(CLI::App &verb, bool &json);

// Adds --key to verbs that take rows from packs, or that check whether they might be taken.
void addKeyFlag(CLI::App &verb, std::vector<std::string> &keys);
// The rules for packs: one of the named keys must have signed. Without named keys, the rules for packs are the rules of
// an engine in this environment (NSA_CACHE_KEYS, NSA_REQUIRE_SIGNATURE).
Result<SignatureRules> signatureRulesOf(const std::vector<std::string> &keys);
// Opens a file as a source of rows, like openSource, and says on stderr when no trusted key has signed it.
Result<CacheFile> openToTake(const std::string &path, const SignatureRules &rules, Databases databases);

// Returns the given path, or the path of the default database when the given path is empty.
Result<std::string> cachePathOf(const std::string &chosen);
Result<CacheFile> openCache(const std::string &chosen, CacheFile::Empty empty);

nlohmann::json toJson(const StoredChoice &choice);
nlohmann::json toJson(const StoredRoute &route);
// "1.2 MiB", "300 bytes".
std::string bytesText(int64_t bytes);
// "3 kernels", "1 kernel".
std::string countText(int64_t count, const std::string &noun);

} // namespace nsa::tools
