// Opens the file of a store under all circumstances. A DatabaseFile makes missing directories, refuses a file that
// other users may write, and renames a damaged kernel database aside. Opening a database never touches a file of
// another kind. A file that cannot be written is opened to read, a file that cannot be locked is replaced by a copy in
// memory, and the last resort is an empty database in memory. DatabaseFile has all rules about files; what a file
// contains is the store's concern.
// Thread-safety: none; several processes may open, replace and use one file at once.
#pragma once

#include "cache/file_system.h"
#include "cache/sqlite.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace nsa {

// Which file a connection has open. The path of an open file may by now name another file.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  bool operator==(const FileIdentity &) const = default;
};

struct DatabaseFile {
  sqlite::Connection connection; // empty only when sqlite cannot even make a database in memory
  std::string path;              // ":memory:" when nothing is stored
  bool readOnly = false;
  // Opened to read, and the file does not exist or has nothing in it: an empty database in memory replaces it.
  bool isEmpty = false;
  FileIdentity identity;
  std::string warning; // one line when the store is limited, or the file was repaired
  std::string note;    // one line when the store works in another way but is not limited
};

// kReadMended first takes back a write that was unfinished when its writer died, and changes nothing else.
enum class FileUse { kWrite, kRead, kReadMended };

// `lockedWait` is the longest wait for a file that another process keeps locked. If `journal` is unset, the journal
// that suits the file system is taken. `damaged` names a file that failed in use: it is replaced, unless another
// process has replaced it already.
DatabaseFile openDatabaseFile(const std::string &path, FileUse use, std::chrono::milliseconds lockedWait,
                              std::optional<Journal> journal = {}, std::optional<FileIdentity> damaged = {});

// Copies what a file contains at this moment into memory. The copy in memory serves for a file that cannot be locked.
DatabaseFile copyDatabaseFile(const std::string &path);

} // namespace nsa
