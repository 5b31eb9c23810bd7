// Opens the database file of a kernel store, also when the file is damaged, locked, missing or not writable. A
// DatabaseFile makes missing directories, refuses a file that other users may write, and renames a damaged kernel
// database aside. Opening a database never changes a file of another kind. A file that cannot be written is opened for
// reading, a file that cannot be locked is replaced by a copy in memory, and if nothing else is possible, an empty
// database in memory is used. DatabaseFile has all rules for opening, creating and replacing the file; KernelStore has
// all rules for its content.
// Thread-safety: one thread at a time may use a DatabaseFile; several processes may open, replace and use one file at
// once.
#pragma once

#include "cache/database/file_system.h"
#include "cache/database/sqlite.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace nsa {

// The device and the inode of the file that a connection has open. The path does not identify the open file, because
// another file may have been renamed to this path since.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  bool operator==(const FileIdentity &) const = default;
};

struct DatabaseFile {
  sqlite::Connection connection; // empty only when sqlite cannot even make a database in memory
  std::string path;              // ":memory:" when nothing is stored
  bool readOnly = false;
  // True if the file was to be opened for reading, but does not exist or is empty. If `isEmpty` is true, `connection`
  // is an empty database in memory.
  bool isEmpty = false;
  FileIdentity identity;
  std::string warning; // one line when the store is limited, or the file was repaired
  std::string note;    // one line when the store works in another way but is not limited
};

// The mode kReadMended first undoes a write that was unfinished when its writer died. kReadMended changes nothing else
// in the file.
enum class FileUse { kWrite, kRead, kReadMended };

// `lockedWait` is the longest wait for a file that another process keeps locked. If `journal` is unset, the journal
// mode that suits the file system is used. `damaged` identifies a file in which an error was found during use.
// openDatabaseFile replaces the damaged file, unless another process has replaced it already.
DatabaseFile openDatabaseFile(const std::string &path, FileUse use, std::chrono::milliseconds lockedWait,
                              std::optional<Journal> journal = {}, std::optional<FileIdentity> damaged = {});

// Copies the present content of a file into a new database in memory. The store uses the copy in memory instead of a
// file that cannot be locked.
DatabaseFile copyDatabaseFile(const std::string &path);

} // namespace nsa
