// Opens the file of a store under every circumstance: makes missing directories, refuses what others may
// write, renames a damaged kernel database aside, leaves every other file alone, falls back to reading, to a copy
// where there are no locks, and in the end to memory. All file policy is here; what is in the file is the store's.
// Thread-safety: none; distinct processes may open, replace and use one file at once.
#pragma once

#include "cache/file_system.h"
#include "cache/sqlite.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace nsa {

// Which file a connection has open; a path may name another one by now.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  bool operator==(const FileIdentity &) const = default;
};

struct DatabaseFile {
  sqlite::Connection connection; // empty only when sqlite cannot even make a database in memory
  std::string path;              // ":memory:" when nothing is kept
  bool readOnly = false;
  bool isEmpty = false; // opened to read, and not there or nothing in it yet: an empty one in memory stands for it
  FileIdentity identity;
  std::string warning; // one line when something is reduced or was repaired
  std::string note;    // one line when something is done in another way, and as well
};

// kReadMended: what a writer had begun when it died is taken back first; nothing else is changed.
enum class FileUse { kWrite, kRead, kReadMended };

// `lockedWait`: for a file that another process keeps locked. `journal`: unset for the one that suits the file system.
// `damaged`: this file has failed in use and is to be replaced, unless another process already did.
DatabaseFile openDatabaseFile(const std::string &path, FileUse use, std::chrono::milliseconds lockedWait,
                              std::optional<Journal> journal = {}, std::optional<FileIdentity> damaged = {});

// For a file that cannot be locked: what it holds at this moment, in memory.
DatabaseFile copyDatabaseFile(const std::string &path);

} // namespace nsa
