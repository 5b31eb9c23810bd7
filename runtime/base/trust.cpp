#include "runtime/base/trust.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <unistd.h>

namespace nsa {

namespace {

constexpr int kMostLinks = 40; // as Linux

std::string quoted(const std::string &path) { return "'" + path + "'"; }

bool isForeign(const struct stat &facts) { return facts.st_uid != 0 && facts.st_uid != ::geteuid(); }

// "group 100 may write X (mode 0775)", "X belongs to another user (...)"; "" when neither is so.
std::string faultOf(const std::string &what, const struct stat &facts, bool isSticky) {
  if (isForeign(facts))
    return what + " belongs to another user (uid " + std::to_string(facts.st_uid) + ", not " +
           std::to_string(::geteuid()) + " and not root)";
  if (isSticky || !(facts.st_mode & (S_IWGRP | S_IWOTH)))
    return "";
  char mode[8];
  std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(facts.st_mode & 07777));
  return (facts.st_mode & S_IWOTH ? std::string("everyone") : "group " + std::to_string(facts.st_gid)) + " may write " +
         what + " (mode " + mode + ")";
}

std::string lookFault(const std::string &path, int error) {
  return quoted(path) + " cannot be looked at: " + std::generic_category().message(error);
}

std::string linkFault(const std::string &path) {
  return quoted(path) + " is a link, which is not followed here (remove it, or make what it leads to)";
}

} // namespace

std::string whyFolderNotTrusted(const std::string &folder) {
  for (size_t end = 1;; end = std::min(folder.find('/', end + 1), folder.size())) {
    const std::string path = folder.substr(0, end);
    struct stat facts{};
    if (::lstat(path.c_str(), &facts) != 0)
      return lookFault(path, errno);
    if (S_ISLNK(facts.st_mode))
      return linkFault(path);
    const bool isOnTheWay = end < folder.size();
    const std::string reason = faultOf("folder " + quoted(path), facts, isOnTheWay && (facts.st_mode & S_ISVTX));
    if (!reason.empty())
      return reason + ": code could be planted there (" + (isForeign(facts) ? "" : "chmod go-w it, or ") +
             "use a folder of your own)";
    if (!isOnTheWay)
      return "";
  }
}

std::string whyFileNotTrusted(const std::string &path, const struct stat &facts) {
  const std::string fault = faultOf(quoted(path), facts, false);
  if (fault.empty())
    return "";
  return fault + ": code could be planted in it (" + (isForeign(facts) ? "copy it" : "chmod go-w it") +
         ", if it is trusted, or remove it)";
}

std::string whyFileNotTrusted(const std::string &path) {
  struct stat facts{};
  if (::lstat(path.c_str(), &facts) != 0)
    return errno == ENOENT ? "" : lookFault(path, errno);
  return S_ISLNK(facts.st_mode) ? linkFault(path) : whyFileNotTrusted(path, facts);
}

std::string whyNotTrusted(const std::string &path) {
  const std::string reason = whyFolderNotTrusted(path.substr(0, std::max<size_t>(path.rfind('/'), 1)));
  return reason.empty() ? whyFileNotTrusted(path) : reason;
}

FollowedPath followLinks(const std::string &path) {
  FollowedPath followed;
  std::string reached, rest = path; // free of links, "" for the root; and what is still to be walked
  int links = 0;
  // What is not there, or not for us to see, may come to be there: after a link its folder counts too.
  const auto stop = [&](int error) {
    followed.error = error;
    if (links > 0)
      followed.fault = whyFolderNotTrusted(reached.empty() ? "/" : reached);
    return followed;
  };
  if (!path.starts_with('/')) {
    const std::unique_ptr<char, void (*)(void *)> current(::realpath(".", nullptr), &std::free);
    if (!current)
      return stop(errno);
    reached = std::string_view(current.get()) == "/" ? "" : current.get();
  }
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('/'), rest.size());
    const std::string name = rest.substr(0, end);
    rest.erase(0, end + 1);
    if (name.empty() || name == ".")
      continue;
    if (name == "..") {
      reached.erase(std::min(reached.rfind('/'), reached.size()));
      continue;
    }
    const std::string place = reached + "/" + name;
    struct stat facts{};
    if (::lstat(place.c_str(), &facts) != 0)
      return stop(errno);
    if (!S_ISLNK(facts.st_mode)) {
      reached = place;
      continue;
    }
    facts.st_mode = 0; // the mode of a link allows everything, and a link cannot be written
    followed.fault = whyFolderNotTrusted(reached.empty() ? "/" : reached);
    if (followed.fault.empty())
      followed.fault = whyFileNotTrusted(place, facts);
    if (!followed.fault.empty())
      return followed;
    if (++links > kMostLinks)
      return stop(ELOOP);
    char target[PATH_MAX];
    const ssize_t length = ::readlink(place.c_str(), target, sizeof target);
    if (length < 0)
      return stop(errno);
    rest = std::string(target, static_cast<size_t>(length)) + "/" + rest;
    if (target[0] == '/')
      reached.clear();
  }
  followed.file = reached.empty() ? "/" : reached;
  followed.fault = whyNotTrusted(followed.file);
  return followed;
}

} // namespace nsa
