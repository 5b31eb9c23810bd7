#include "runtime/engine/options/cache_settings.h"

#include "runtime/engine/compile/library_place.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace nsa {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPackEnding = ".nsapack";

} // namespace

Result<std::vector<std::string>> splitPaths(const std::string &field, const std::string &text) {
  std::vector<std::string> paths;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(':', begin), text.size());
    if (end == begin || end + 1 == text.size())
      return Status::invalid(field, "'" + text + "'", "must be names of files with one ':' between them");
    paths.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return paths;
}

std::vector<std::string> packsIn(const std::string &folder) {
  std::vector<std::string> packs;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == kPackEnding)
      packs.push_back(entry->path().string());
  std::sort(packs.begin(), packs.end());
  return packs;
}

std::string installedPackFolder() {
  const fs::path folder = LibraryPlace::own().find("../share/nsa/packs");
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  return (error ? folder : real).string();
}

Result<CacheSettings> settingsOf(const EngineOptions &options, std::vector<std::string> &warnings) {
  CacheSettings settings;
  settings.path = options.cachePath;
  settings.maxBytes = options.cacheMaxBytes;
  NSA_ASSIGN_OR_RETURN(std::vector<std::string> keys, splitPaths("cache_keys", options.cacheKeys));
  NSA_ASSIGN_OR_RETURN(settings.signatures, readSignatureRules(options.requireSignature, keys, warnings));
  if (options.cachePacks == kNone)
    return settings;
  NSA_ASSIGN_OR_RETURN(settings.packs, splitPaths("cache_packs", options.cachePacks));
  for (std::string &pack : packsIn(installedPackFolder()))
    settings.packs.push_back(std::move(pack));
  return settings;
}

} // namespace nsa
