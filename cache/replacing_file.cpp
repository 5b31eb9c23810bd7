#include "cache/replacing_file.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace nsa {

namespace {

constexpr mode_t kMostRights = 0644; // never everyone's to write: such a file would be refused

Status failure(const std::string &path, const std::string &what, int error, std::string hint = "") {
  return Status::error(ErrorCode::kIoError, "'" + path + "' " + what + ": " + std::generic_category().message(error),
                       std::move(hint));
}

Status refuseExisting(const std::string &path) {
  return Status::error(ErrorCode::kIoError, "'" + path + "' exists already", "name another file, or --force");
}

// Also of a directory: a name is safe once its directory is.
int syncPath(const std::string &path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return errno;
  const int error = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  return error;
}

} // namespace

ReplacingFile::ReplacingFile(ReplacingFile &&other) noexcept
    : path(std::move(other.path)), temporary(std::exchange(other.temporary, "")), existing(other.existing) {}

ReplacingFile::~ReplacingFile() {
  if (!temporary.empty())
    ::unlink(temporary.c_str());
}

Result<ReplacingFile> ReplacingFile::create(const std::string &path, Existing existing) {
  struct stat facts{};
  if (::lstat(path.c_str(), &facts) == 0) {
    if (existing == Existing::kRefuse)
      return refuseExisting(path);
    if (!S_ISREG(facts.st_mode))
      return Status::error(ErrorCode::kIoError, "'" + path + "' exists and is not a regular file", "name another file");
  }
  ReplacingFile file;
  file.path = path;
  file.existing = existing;
  std::string pattern = path + ".XXXXXX";
  const int descriptor = ::mkostemp(pattern.data(), O_CLOEXEC);
  if (descriptor < 0)
    return failure(path, "cannot be made", errno, "the folder must exist and be writable");
  file.temporary = std::move(pattern);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  const int changed = ::fchmod(descriptor, kMostRights & ~mask);
  ::close(descriptor);
  if (changed != 0)
    return failure(path, "cannot be made", errno);
  return file;
}

Status ReplacingFile::commit() {
  if (const int error = syncPath(temporary))
    return failure(path, "cannot be written", error);
  int result = -1;
  if (existing == Existing::kRefuse) {
    result = ::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE);
    if (result != 0 && errno == EEXIST)
      return refuseExisting(path);
  }
  // Not every file system knows that kind of renaming; the name was free a moment ago.
  if (result != 0 && (existing == Existing::kReplace || errno == EINVAL || errno == ENOSYS))
    result = ::rename(temporary.c_str(), path.c_str());
  if (result != 0)
    return failure(path, "cannot be put in place", errno);
  temporary.clear();
  const std::filesystem::path directory = std::filesystem::path(path).parent_path();
  if (const int error = syncPath(directory.empty() ? "." : directory.string()))
    return failure(path, "was made, but its directory cannot be synced", error);
  return Status::ok();
}

} // namespace nsa
