#include "runtime/base/trust.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <unistd.h>

namespace nsa {

namespace {

std::string quoted(const std::string &path) { return "'" + path + "'"; }

// "group 100 may write X (mode 0775)", "X belongs to another user (...)"; "" when neither is so.
std::string faultOf(const std::string &what, const struct stat &facts, bool isSticky) {
  if (facts.st_uid != 0 && facts.st_uid != ::geteuid())
    return what + " belongs to another user (uid " + std::to_string(facts.st_uid) + ", not " +
           std::to_string(::geteuid()) + " and not root)";
  if (isSticky || !(facts.st_mode & (S_IWGRP | S_IWOTH)))
    return "";
  char mode[8];
  std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(facts.st_mode & 07777));
  return (facts.st_mode & S_IWOTH ? std::string("everyone") : "group " + std::to_string(facts.st_gid)) + " may write " +
         what + " (mode " + mode + ")";
}

// Looks at a name without following it. False: there is nothing, or `reason` says why it cannot be judged.
bool look(const std::string &path, struct stat &facts, std::string &reason) {
  if (::lstat(path.c_str(), &facts) != 0) {
    if (errno != ENOENT && errno != ENOTDIR)
      reason = quoted(path) + " cannot be looked at: " + std::generic_category().message(errno);
    return false;
  }
  if (!S_ISLNK(facts.st_mode))
    return true;
  reason = quoted(path) + " is a link that leads nowhere (remove it, or make what it leads to)";
  return false;
}

} // namespace

std::string whyFolderNotTrusted(const std::string &folder) {
  for (size_t end = 1;; end = std::min(folder.find('/', end + 1), folder.size())) {
    const std::string path = folder.substr(0, end);
    struct stat facts{};
    std::string reason;
    if (!look(path, facts, reason))
      return reason;
    const bool isOnTheWay = end < folder.size();
    reason = faultOf("folder " + quoted(path), facts, isOnTheWay && (facts.st_mode & S_ISVTX));
    if (!reason.empty())
      return reason + ": code could be planted there (chmod go-w it, or use a folder of your own)";
    if (!isOnTheWay)
      return "";
  }
}

std::string whyFileNotTrusted(const std::string &path, const struct stat &facts) {
  const std::string fault = faultOf(quoted(path), facts, false);
  return fault.empty()
             ? ""
             : fault + ": code could be planted in it (chmod go-w it, or a copy of your own, if it is trusted)";
}

std::string whyFileNotTrusted(const std::string &path) {
  struct stat facts{};
  std::string reason;
  return look(path, facts, reason) ? whyFileNotTrusted(path, facts) : reason;
}

std::string whyNotTrusted(const std::string &path) {
  const std::string reason = whyFolderNotTrusted(path.substr(0, std::max<size_t>(path.rfind('/'), 1)));
  return reason.empty() ? whyFileNotTrusted(path) : reason;
}

} // namespace nsa
