#include "runtime/engine/options/option_paths.h"

#include "cache/database/directories.h"
#include "runtime/engine/options/cache_settings.h"

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
  if (isThere && mayAccess(path, isFolder ? R_OK | X_OK : R_OK))
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
    reason = whyNotMade(path.parent_path());
  if (reason.empty())
    return Status::ok();
  return Status::invalid(name, value, "must be a place for a file that is there or can be made: " + reason);
}

} // namespace

Status checkPaths(const EngineOptions &options) {
  for (const PathOption &option : pathOptions()) {
    const std::string &value = options.*option.member;
    const std::string name = options.sourceOf(option.member);
    if (name.empty())
      continue;
    switch (option.kind) {
    case PathOption::Kind::kPacks:
      if (value == kNone)
        break;
      [[fallthrough]];
    case PathOption::Kind::kFiles: {
      NSA_ASSIGN_OR_RETURN(std::vector<std::string> files, splitPaths(name, value));
      for (const std::string &file : files)
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
      if (const std::string reason = whyNotMade(value); !reason.empty())
        return Status::invalid(name, value, "must be a folder that can be written or made: " + reason);
      break;
    case PathOption::Kind::kDatabase:
      if (value != ":memory:")
        NSA_RETURN_IF_ERROR(
            checkDatabase(name, name == option.variable ? fs::path(value).parent_path().string() : value, value));
      break;
    case PathOption::Kind::kOpened:
      break;
    }
  }
  return Status::ok();
}

} // namespace nsa
