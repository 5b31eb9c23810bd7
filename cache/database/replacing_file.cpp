#include "cache/database/replacing_file.h"

#include "cache/database/file_system.h"

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <random>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace nsa {

namespace {

constexpr mode_t kMostRights = 0644; // never everyone's to write: such a file would be refused
constexpr int kMostNames = 100;      // each of 64 drawn bits
constexpr size_t kDrawnDigits = 16;
constexpr time_t kAbandonedSeconds = 3600;

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

// Locks of a network are byte ranges of the file, which sqlite would wait for in vain.
bool hasWriterLocks(const std::filesystem::path &folder) { return networkFileSystemOf(folder).empty(); }

std::filesystem::path folderOf(const std::filesystem::path &path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

// The mask of the process is asked for nowhere: that would be to change it, for all threads. The file is locked as long
// as its descriptor is open.
int createBeside(const std::string &path, std::string &name) {
  std::random_device draw;
  const bool locks = hasWriterLocks(folderOf(path));
  for (int tries = 0; tries < kMostNames; ++tries) {
    char ending[20];
    std::snprintf(ending, sizeof ending, ".%08x%08x", draw(), draw());
    name = path + ending;
    const int descriptor = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kMostRights);
    if (descriptor >= 0 && locks)
      ::flock(descriptor, LOCK_EX | LOCK_NB);
    if (descriptor >= 0 || errno != EEXIST)
      return descriptor;
  }
  return -1;
}

// Gives the file its name unless there is one of that name; 0 or what went wrong.
int renameIfFree(const std::string &from, const std::string &to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0)
    return 0;
  if (errno != EINVAL && errno != ENOSYS)
    return errno;
  // Not every file system (NFS) knows that kind of renaming; a second name is refused where one stands, too.
  if (::link(from.c_str(), to.c_str()) != 0)
    return errno;
  ::unlink(from.c_str());
  return 0;
}

// "file.0123456789abcdef" of "file", and what sqlite keeps beside such a file.
bool isTemporaryOf(std::string_view name, std::string_view file) {
  if (!name.starts_with(file) || name.size() < file.size() + 1 + kDrawnDigits || name[file.size()] != '.')
    return false;
  const std::string_view drawn = name.substr(file.size() + 1, kDrawnDigits),
                         ending = name.substr(file.size() + 1 + kDrawnDigits);
  return drawn.find_first_not_of("0123456789abcdef") == std::string_view::npos &&
         (ending.empty() || ending == "-journal" || ending == "-wal" || ending == "-shm");
}

// Whether a process keeps the lock of a temporary file, or could keep one that is not seen.
bool hasWriter(const std::string &temporary) {
  const int descriptor = ::open(temporary.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0)
    return errno != ENOENT; // only what sqlite keeps beside it is left
  const bool isLocked = ::flock(descriptor, LOCK_EX | LOCK_NB) != 0;
  ::close(descriptor);
  return isLocked;
}

// What a process left that was killed while it wrote. A writer may have slept for longer, so its lock decides; the age
// is for the moment between a file and its lock. Where there are no locks it all stays.
void removeAbandoned(const std::filesystem::path &path) {
  std::error_code error;
  const std::filesystem::path folder = folderOf(path);
  if (!hasWriterLocks(folder))
    return;
  const size_t nameLength = path.filename().native().size() + 1 + kDrawnDigits;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    struct stat facts{};
    if (isTemporaryOf(entry->path().filename().native(), path.filename().native()) &&
        ::lstat(entry->path().c_str(), &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == ::geteuid() &&
        ::time(nullptr) - facts.st_mtime > kAbandonedSeconds &&
        !hasWriter((folder / entry->path().filename().native().substr(0, nameLength)).native()))
      ::unlink(entry->path().c_str());
  }
}

} // namespace

ReplacingFile::ReplacingFile(ReplacingFile &&other) noexcept
    : path(std::move(other.path)), temporary(std::exchange(other.temporary, "")),
      descriptor(std::exchange(other.descriptor, -1)), existing(other.existing) {}

ReplacingFile::~ReplacingFile() {
  if (!temporary.empty())
    ::unlink(temporary.c_str());
  if (descriptor >= 0)
    ::close(descriptor);
}

Result<ReplacingFile> ReplacingFile::create(const std::string &path, Existing existing) {
  struct stat facts{};
  if (::lstat(path.c_str(), &facts) == 0) {
    if (existing == Existing::kRefuse)
      return refuseExisting(path);
    if (!S_ISREG(facts.st_mode))
      return Status::error(ErrorCode::kIoError, "'" + path + "' exists and is not a regular file", "name another file");
  }
  removeAbandoned(path);
  ReplacingFile file;
  file.path = path;
  file.existing = existing;
  std::string name;
  file.descriptor = createBeside(path, name);
  if (file.descriptor < 0)
    return failure(path, "cannot be made", errno, "the folder must exist and be writable");
  file.temporary = std::move(name);
  return file;
}

Status ReplacingFile::commit() {
  int error = syncPath(temporary);
  if (error != 0)
    return failure(path, "cannot be written", error);
  if (existing == Existing::kRefuse)
    error = renameIfFree(temporary, path);
  else if (::rename(temporary.c_str(), path.c_str()) != 0)
    error = errno;
  if (existing == Existing::kRefuse && error == EEXIST)
    return refuseExisting(path);
  if (error != 0)
    return failure(path, "cannot be put in place", error,
                   existing == Existing::kRefuse ? "--force needs less of the file system" : "");
  temporary.clear();
  const std::filesystem::path directory = std::filesystem::path(path).parent_path();
  if ((error = syncPath(directory.empty() ? "." : directory.string())))
    return failure(path, "was made, but its directory cannot be synced", error);
  return Status::ok();
}

} // namespace nsa
