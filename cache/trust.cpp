#include "cache/trust.h"

#include <sys/stat.h>
#include <unistd.h>

namespace nsa {

namespace {

bool isForeign(const struct stat &status) { return status.st_uid != 0 && status.st_uid != ::geteuid(); }

std::string owner(const struct stat &status) {
  return "another user (uid " + std::to_string(status.st_uid) + ", not " + std::to_string(::geteuid()) +
         " and not root)";
}

} // namespace

std::string whyNotTrusted(const std::filesystem::path &path) {
  struct stat status{};
  if (::stat(path.parent_path().c_str(), &status) == 0) {
    if (status.st_mode & S_IWOTH)
      return "everyone may write its directory and so plant kernels (use a directory of your own)";
    if (isForeign(status))
      return "its directory belongs to " + owner(status) + ", who may plant kernels (use a directory of your own)";
  }
  if (::stat(path.c_str(), &status) == 0) {
    if (status.st_mode & S_IWOTH)
      return "everyone may write it and so plant kernels (chmod o-w it, if its content is trusted)";
    if (isForeign(status))
      return "it belongs to " + owner(status) + ", who may plant kernels (copy it, if its content is trusted)";
  }
  return "";
}

} // namespace nsa
