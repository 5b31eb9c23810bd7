#include "cache/database/directories.h"

#include "runtime/base/trust.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace nsa {

namespace {

namespace fs = std::filesystem;

std::string inQuotes(const fs::path &path) { return "'" + path.string() + "'"; }

} // namespace

bool makeDirectories(const fs::path &directory, std::string &reason) {
  if (directory.empty() || ::mkdir(directory.c_str(), 0700) == 0 || errno == EEXIST)
    return true;
  int error = errno;
  if (error == ENOENT && directory.has_parent_path() && directory.parent_path() != directory) {
    if (!makeDirectories(directory.parent_path(), reason))
      return false;
    if (::mkdir(directory.c_str(), 0700) == 0 || errno == EEXIST)
      return true;
    error = errno;
  }
  // A read-only medium may refuse although the directory stands.
  struct stat status;
  if (::stat(directory.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
    return true;
  reason = "directory " + inQuotes(directory) + " cannot be made: " + std::generic_category().message(error);
  return false;
}

bool mayAccess(const fs::path &path, int mode) { return ::faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0; }

std::string whyNotMade(const fs::path &directory) {
  struct stat status{};
  if (::stat(directory.c_str(), &status) != 0 && directory.has_parent_path() && directory.parent_path() != directory)
    return whyNotMade(directory.parent_path());
  if (S_ISDIR(status.st_mode) && mayAccess(directory, W_OK | X_OK))
    return "";
  const int error = S_ISDIR(status.st_mode) ? errno : ENOTDIR;
  return "nothing can be made in " + inQuotes(directory) + ": " + std::generic_category().message(error);
}

std::string whyDatabaseNotTrusted(const fs::path &path) {
  std::string reason = whyNotTrusted(path.string());
  for (const char *ending : {"-wal", "-shm", "-journal"})
    if (reason.empty())
      reason = whyFileNotTrusted(path.string() + ending);
  return reason;
}

} // namespace nsa
