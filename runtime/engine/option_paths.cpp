#include "runtime/engine/option_paths.h"

#include "cache/directories.h"
#include "runtime/engine/cache_settings.h"

#include <cerrno>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace nsa {

namespace {

namespace fs = std::filesystem;

// "" when the process can read it, and it is a folder or not, as wanted.
std::string whyNotRead(const std::string &path, bool isFolder) {
  struct stat found{};
  const bool isThere = ::stat(path.c_str(), &found) == 0;
  if (isThere && S_ISDIR(found.st_mode) != isFolder)
    return isFolder ? "it is no folder" : "it is a folder";
  if (isThere && ::access(path.c_str(), isFolder ? R_OK | X_OK : R_OK) == 0)
    return "";
  return std::generic_category().message(errno);
}

Status checkRead(const std::string &name, const std::string &path, bool isFolder = false) {
  const std::string reason = whyNotRead(path, isFolder);
  if (reason.empty())
    return Status::ok();
  return Status::invalid(name, path,
                         std::string("must be a ") + (isFolder ? "folder" : "file") +
                             " that this process can read: " + reason);
}

// A file that stands there may be read-only, damaged or of something else: that is a warning, as kernels are compiled
// without it (cache/kernel_store.h).
Status checkDatabase(const std::string &name, const std::string &value, const fs::path &path) {
  std::error_code error;
  std::string reason;
  if (fs::is_directory(path, error))
    reason = "it is a folder";
  else if (!fs::exists(path, error))
    reason = whyNotMade(fs::absolute(path, error).parent_path());
  if (reason.empty())
    return Status::ok();
  return Status::invalid(name, value, "must be a place for a file that is there or can be made: " + reason);
}

} // namespace

Status checkPaths(const EngineOptions &asked, const EngineOptions::Environment &environment) {
  const auto variable = [&](const char *name) {
    const char *value = environment(name);
    return std::string(value ? value : "");
  };
  if (!asked.cachePath.empty() && asked.cachePath != ":memory:")
    NSA_RETURN_IF_ERROR(checkDatabase("cache_path", asked.cachePath, asked.cachePath));
  if (const std::string folder = variable("NSA_CACHE_DIR"); asked.cachePath.empty() && !folder.empty())
    NSA_RETURN_IF_ERROR(checkDatabase("NSA_CACHE_DIR", folder, cacheFileIn(folder)));
  for (const PathOption &option : pathOptions()) {
    const std::string &own = asked.*option.member;
    const std::string name = own.empty() ? option.variable : option.field;
    const std::string value = own.empty() ? variable(option.variable) : own;
    if (value.empty())
      continue;
    switch (option.kind) {
    case PathOption::Kind::kPacks:
      if (value == kNoPacks)
        break;
      [[fallthrough]];
    case PathOption::Kind::kFiles: {
      Result<std::vector<std::string>> files = splitPaths(name, value);
      if (!files)
        return files.status();
      for (const std::string &file : *files)
        NSA_RETURN_IF_ERROR(checkRead(name, file));
      break;
    }
    case PathOption::Kind::kLibrary:
      if (value.find('/') != std::string::npos) // else a name that the loader looks for
        NSA_RETURN_IF_ERROR(checkRead(name, value));
      break;
    case PathOption::Kind::kFolder:
      NSA_RETURN_IF_ERROR(checkRead(name, value, true));
      break;
    case PathOption::Kind::kNewFolder:
      if (const std::string reason = whyNotMade(fs::absolute(value)); !reason.empty())
        return Status::invalid(name, value, "must be a folder that can be written or made: " + reason);
      break;
    }
  }
  return Status::ok();
}

} // namespace nsa
