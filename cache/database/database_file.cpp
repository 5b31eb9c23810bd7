#include "cache/database/database_file.h"

#include "cache/database/directories.h"
#include "cache/database/schema.h"
#include "cache/database/unfinished_write.h"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <random>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace nsa {

namespace {

namespace fs = std::filesystem;
using sqlite::Connection;
using Clock = std::chrono::steady_clock;

constexpr int kMaxRenamed = 1000;
constexpr int kMostReplacingTries = 30;
constexpr std::chrono::milliseconds kReplacingPause{10};
// A lock that lasts longer may be none: before the long wait for it, locks are tried out.
constexpr std::chrono::milliseconds kShortLock{500};
// A lock service that has just begun to answer refuses some of the first.
constexpr int kProbeTries = 3;
constexpr std::chrono::milliseconds kProbePause{50};

DatabaseFile openInMemory(std::string warning) {
  DatabaseFile file;
  file.path = ":memory:";
  file.warning = std::move(warning);
  int code;
  file.connection = Connection::open(file.path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, code);
  if (file.connection &&
      adoptDatabase(file.connection, true, Journal::kWriteAheadLog, Clock::now()) != FileVerdict::kUsable)
    file.connection.close();
  return file;
}

std::string quoted(const fs::path &path) { return "'" + path.string() + "'"; }

DatabaseFile workWithout(const fs::path &path, const std::string &reason) {
  return openInMemory("cache file " + quoted(path) + " is not used: " + reason + "; kernels are kept in memory only");
}

// A reader's view of a file in which nothing was ever stored.
DatabaseFile openEmpty() {
  DatabaseFile file = openInMemory("");
  file.isEmpty = true;
  return file;
}

// The same of one that is not there, and nothing to say unless it could not be made either.
DatabaseFile openMissing(const fs::path &path) {
  const std::string reason = whyNotMade(path.parent_path());
  return reason.empty() ? openEmpty() : workWithout(path, reason);
}

bool isPresent(const fs::path &path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0;
}

FileIdentity identityOf(const fs::path &path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0)
    return {};
  return {static_cast<uint64_t>(status.st_dev), static_cast<uint64_t>(status.st_ino)};
}

FileVerdict adopt(const fs::path &path, Connection connection, bool mayWrite, Journal journal, Clock::time_point end,
                  DatabaseFile &file) {
  // Only what stands at the path was judged. The header comes before anything that would take a lock or look at a log:
  // a file of somebody else stays as it is.
  FileVerdict verdict = connection.hasMoved() ? FileVerdict::kReplaced
                                              : checkHeader(connection, FileKind::kDatabase, end, hasJournal(path));
  if (verdict == FileVerdict::kUsable)
    verdict = adoptDatabase(connection, mayWrite, journal, end);
  if (connection.hasMoved()) // another process found it damaged and renamed it aside
    verdict = FileVerdict::kReplaced;
  if (verdict != FileVerdict::kUsable) {
    connection.leaveFileAlone();
    return verdict;
  }
  file.readOnly = connection.isReadOnly();
  file.connection = std::move(connection);
  file.path = path.string();
  file.identity = identityOf(path);
  return verdict;
}

FileVerdict tryOpen(const fs::path &path, int flags, Journal journal, Clock::time_point end, DatabaseFile &file) {
  int code;
  Connection connection = Connection::open(path.string(), flags, code);
  if (!connection)
    return verdictOf(code);
  return adopt(path, std::move(connection), flags & SQLITE_OPEN_READWRITE, journal, end, file);
}

FileVerdict tryImmutable(const fs::path &path, Clock::time_point end, DatabaseFile &file) {
  int code;
  Connection connection = Connection::openImmutable(path.string(), code);
  if (!connection)
    return verdictOf(code);
  return adopt(path, std::move(connection), false, Journal::kRollback, end, file);
}

// Returns whether the file system supports file locks at all. A file system without a lock service may report that
// another process has locked the file (ENOLCK becomes SQLITE_BUSY), and a caller would wait in vain for that process.
// So a new file with a random name in the folder of `path` is locked several times: no other process can have locked
// this file. canLockBeside takes a fraction of a second.
bool canLockBeside(const fs::path &path) {
  std::random_device device;
  const std::string probe = path.string() + ".locks-" + std::to_string(uint64_t{device()} << 32 | device());
  int code;
  Connection connection = Connection::open(probe, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, code);
  if (!connection)
    return true;           // nothing can be made here: that says nothing of locks
  ::unlink(probe.c_str()); // it serves as well without a name, and no death leaves it behind
  connection.execute("PRAGMA journal_mode = MEMORY");
  for (int tries = 0; tries < kProbeTries; ++tries) {
    if (tries > 0)
      std::this_thread::sleep_for(kProbePause);
    code = connection.execute("BEGIN EXCLUSIVE");
    if (code == SQLITE_OK)
      connection.execute("ROLLBACK");
    if ((code & 0xff) != SQLITE_BUSY && !isLackOfLocks(code))
      return true;
  }
  return false;
}

// Serialises the processes that find one file damaged: a lock on its directory, so that no file is left over. Every
// process that may read the directory may take this lock and keep it, so the wait has an end.
class DirectoryLock {
public:
  DirectoryLock(const fs::path &directory, Clock::time_point end)
      : descriptor(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    while (descriptor >= 0 && ::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      isRefused = errno == EWOULDBLOCK && Clock::now() >= end;
      if (isRefused || (errno != EWOULDBLOCK && errno != EINTR))
        return;
      std::this_thread::sleep_for(kReplacingPause);
    }
  }
  ~DirectoryLock() {
    if (descriptor >= 0)
      ::close(descriptor);
  }
  DirectoryLock(const DirectoryLock &) = delete;
  DirectoryLock &operator=(const DirectoryLock &) = delete;

  // Another process held it until the end of the wait. False also where the file system gives no such lock.
  bool wasRefused() const { return isRefused; }

private:
  int descriptor;
  bool isRefused = false;
};

// Moves the file out of the way; its write-ahead log goes first, because sqlite would replay a log that it
// finds beside the new file.
bool renameAside(const fs::path &path, fs::path &aside) {
  for (int n = 1; n <= kMaxRenamed; ++n) {
    aside = path.string() + ".damaged-" + std::to_string(n);
    if (isPresent(aside))
      continue;
    std::string log = path.string() + "-wal";
    if (::rename(log.c_str(), (aside.string() + "-wal").c_str()) != 0 && errno != ENOENT)
      return false;
    ::unlink((path.string() + "-shm").c_str());
    return ::rename(path.c_str(), aside.c_str()) == 0;
  }
  return false;
}

const char *describe(FileVerdict verdict) {
  switch (verdict) {
  case FileVerdict::kDamaged:
    return "it is damaged";
  case FileVerdict::kForeign:
    return "it is no kernel database and is left untouched (name another file)";
  case FileVerdict::kNewer:
    return "it was written by a newer version of this library and is left untouched";
  case FileVerdict::kLocked:
    return "another process keeps it locked";
  case FileVerdict::kNoLocks:
    return "its file system gives no locks";
  case FileVerdict::kEmpty:
    return "it is empty and cannot be written";
  case FileVerdict::kReplaced:
    return "another file took its name each time it was opened";
  case FileVerdict::kUsable:
  case FileVerdict::kUnreachable:
    break;
  }
  return "it cannot be opened or created";
}

// What the file holds at this moment, in memory, because of `reason`.
DatabaseFile copyInMemory(const fs::path &path, const std::string &reason, bool mayBeEmpty) {
  DatabaseFile from, copy = openInMemory("");
  FileVerdict verdict = tryImmutable(path, Clock::now(), from);
  if (verdict == FileVerdict::kEmpty && mayBeEmpty)
    return openEmpty();
  if (verdict == FileVerdict::kUsable && copy.connection) {
    verdict = verdictOf(from.connection.copyTo(copy.connection));
    if (verdict == FileVerdict::kUsable) // one of an older schema gets what it lacks
      verdict = adoptDatabase(copy.connection, true, Journal::kWriteAheadLog, Clock::now());
  }
  if (verdict != FileVerdict::kUsable)
    return workWithout(path, reason + " and " + describe(verdict));
  copy.warning =
      "cache file " + quoted(path) + ": " + reason + "; what is stored is used from a copy in memory, nothing is added";
  return copy;
}

// Nothing: another file has taken its name, which is to be judged.
std::optional<DatabaseFile> openReadOnly(const fs::path &path, FileUse use, Journal journal, Clock::time_point end) {
  DatabaseFile file;
  const bool asked = use != FileUse::kWrite;
  const auto attempt = [&] { return tryOpen(path, SQLITE_OPEN_READONLY, Journal::kRollback, end, file); };
  FileVerdict verdict = attempt();
  // A writer has died, or is at it, or another reader has just taken back what it had begun: looked at until there was
  // no journal before the look.
  bool hadJournal = verdict == FileVerdict::kUnreachable;
  for (int tries = 0; verdict == FileVerdict::kUnreachable && hadJournal && tries < kMostReplacingTries; ++tries) {
    if (tries > 0)
      std::this_thread::sleep_for(kReplacingPause);
    const bool mayTakeBack = use == FileUse::kReadMended && tries == 0;
    const FileVerdict mended = mayTakeBack ? takeBackUnfinished(path, journal, end) : FileVerdict::kUsable;
    hadJournal = hasJournal(path);
    verdict = mended == FileVerdict::kLocked ? mended : attempt();
  }
  if (verdict == FileVerdict::kNoLocks)
    return copyDatabaseFile(path.string());
  if (verdict == FileVerdict::kUnreachable && hadJournal)
    return copyInMemory(path, "a write to it was begun and not ended, and is not taken back here", asked);
  // A database with a write-ahead log needs files beside it; where none can be made it is read as it stands.
  if (verdict == FileVerdict::kUnreachable)
    verdict = tryImmutable(path, end, file);
  // Who made it died, or is at it: as good as no file.
  if (verdict == FileVerdict::kEmpty && asked)
    return openEmpty();
  if (verdict == FileVerdict::kReplaced)
    return std::nullopt;
  if (verdict != FileVerdict::kUsable)
    return workWithout(path, describe(verdict));
  file.readOnly = true;
  if (!asked)
    file.warning = "cache file " + quoted(path) + " cannot be written: what is stored is used, nothing is added";
  return file;
}

// Judges what stands at the path, and opens it. Nothing: another file has taken its name meanwhile.
std::optional<DatabaseFile> openJudged(const std::string &name, FileUse use, Clock::time_point end,
                                       std::optional<Journal> wanted, std::optional<FileIdentity> damaged) {
  // Through links to the real place: there the permissions count, and there a damaged file is renamed.
  std::error_code error;
  fs::path path = fs::weakly_canonical(fs::absolute(name, error), error);
  if (error == std::errc::no_such_file_or_directory) // another process renamed it between two looks
    path = fs::weakly_canonical(fs::absolute(name, error), error);
  if (error)
    return workWithout(name, error.message());
  fs::path directory = path.parent_path();
  std::string reason;
  if (use == FileUse::kWrite && !makeDirectories(directory, reason))
    return workWithout(path, reason);
  if (use != FileUse::kWrite && !isPresent(directory))
    return openMissing(path);
  if (reason = whyDatabaseNotTrusted(path); !reason.empty())
    return workWithout(path, reason);
  if (const fs::file_status status = fs::status(path, error); fs::exists(status) && !fs::is_regular_file(status))
    return workWithout(path, "it is no regular file"); // a pipe would be waited for
  const std::string network = networkFileSystemOf(directory);
  const Journal journal = wanted.value_or(network.empty() ? Journal::kWriteAheadLog : Journal::kRollback);
  if (use != FileUse::kWrite)
    return isPresent(path) ? openReadOnly(path, use, journal, end) : openMissing(path);

  DatabaseFile file;
  Clock::time_point until = std::min(end, Clock::now() + kShortLock);
  auto attempt = [&] {
    file = {};
    const FileVerdict verdict = tryOpen(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, journal, until, file);
    return verdict == FileVerdict::kUsable && damaged == file.identity ? FileVerdict::kDamaged : verdict;
  };
  FileVerdict verdict = attempt();
  if (verdict == FileVerdict::kLocked && !canLockBeside(path))
    verdict = FileVerdict::kNoLocks;
  until = end;
  if (verdict == FileVerdict::kLocked)
    verdict = attempt();
  if (verdict == FileVerdict::kDamaged) {
    const std::string what = describe(verdict);
    const DirectoryLock lock(directory, end);
    if (lock.wasRefused())
      return workWithout(path, what + ", and another process keeps its folder locked, so it is not replaced");
    verdict = attempt(); // another process may have replaced it meanwhile
    if (verdict == FileVerdict::kDamaged) {
      file = {};
      fs::path aside;
      if (!renameAside(path, aside))
        return workWithout(path, what + " and cannot be renamed");
      verdict = attempt();
      file.warning = "cache file " + quoted(path) + ": " + what + "; it was renamed to " + quoted(aside) +
                     " and a new one is made";
    }
  }
  // A file that may be written but cannot, or cannot be opened at all, may be in the hands of one who is just replacing
  // it.
  auto isInBetween = [&] {
    const bool refused = verdict == FileVerdict::kUnreachable || verdict == FileVerdict::kEmpty ||
                         (verdict == FileVerdict::kUsable && file.readOnly);
    return refused && mayAccess(path, W_OK);
  };
  for (int tries = 0; tries < kMostReplacingTries && isInBetween(); ++tries) {
    std::this_thread::sleep_for(kReplacingPause);
    verdict = attempt();
  }
  if (verdict == FileVerdict::kReplaced)
    return std::nullopt;
  if (verdict == FileVerdict::kUsable && !file.readOnly) {
    if (journal == Journal::kRollback)
      file.note = "cache file " + quoted(path) + " is on a file system of a network" +
                  (network.empty() ? "" : " (" + network + ")") + ": a rollback journal is used";
    return file;
  }
  // Of a network, no lock and somebody else's lock may look the same.
  if (verdict == FileVerdict::kNoLocks || (verdict == FileVerdict::kLocked && journal == Journal::kRollback))
    return isPresent(path) ? copyDatabaseFile(path.string()) : workWithout(path, describe(verdict));
  const bool refused = verdict == FileVerdict::kUnreachable || verdict == FileVerdict::kEmpty;
  if (verdict == FileVerdict::kUsable || (refused && isPresent(path)))
    return openReadOnly(path, use, journal, end);
  return workWithout(path, describe(verdict));
}

} // namespace

DatabaseFile copyDatabaseFile(const std::string &name) {
  return copyInMemory(name, describe(FileVerdict::kNoLocks), false);
}

DatabaseFile openDatabaseFile(const std::string &name, FileUse use, std::chrono::milliseconds lockedWait,
                              std::optional<Journal> journal, std::optional<FileIdentity> damaged) {
  if (name == ":memory:")
    return openInMemory("");
  const Clock::time_point end = Clock::now() + lockedWait;
  for (;;) {
    if (std::optional<DatabaseFile> file = openJudged(name, use, end, journal, damaged))
      return std::move(*file);
    if (Clock::now() >= end)
      return workWithout(name, describe(FileVerdict::kReplaced));
    std::this_thread::sleep_for(kReplacingPause);
  }
}

} // namespace nsa
