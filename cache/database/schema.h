// The schema of a kernel database, and the two fields of the sqlite header by which a file is recognised. The field
// application_id distinguishes a kernel database from a pack. The field user_version is the version of the schema.
// docs/cache_format.md describes every column.
// Thread-safety: one thread at a time may use a connection.
#pragma once

#include "cache/database/file_system.h"
#include "cache/database/sqlite.h"
#include "cache/database/tables.h"

#include <chrono>

namespace nsa {

enum class FileKind { kDatabase, kPack };
int64_t applicationOf(FileKind kind);

enum class FileVerdict {
  kUsable,
  kDamaged,     // its header is that of this library, and its structure is broken
  kForeign,     // not certainly a file of this library, so it must not be touched
  kNewer,       // its schema is of a later version of this library
  kLocked,      // another process kept it locked until the end of the wait
  kNoLocks,     // its file system has no locks
  kEmpty,       // nothing is in it yet, and it may not be written
  kReplaced,    // another file took its name while it was opened
  kUnreachable, // cannot be opened, read or created
};

// Returns whether an extended result code of sqlite says that the file system cannot lock the file.
bool isLackOfLocks(int code);

// Converts the result code that sqlite returned while a file was opened or read into a FileVerdict. SQLITE_OK gives
// kUsable.
FileVerdict verdictOf(int code);

// Checks that the file's header is of the given kind, or that the file is an empty database; a file of any other kind
// must not be changed. checkHeader returns kUsable, kForeign, kNewer (databases only), or verdictOf(code) if a read
// failed. checkHeader waits for a locked file until `end`. If `isUnfinished` is true, the file has a rollback journal,
// and may end within its header.
FileVerdict checkHeader(const sqlite::Connection &connection, FileKind kind, std::chrono::steady_clock::time_point end,
                        bool isUnfinished = false);

// Checks that the file is a kernel database, and sets the options of the connection. If `mayWrite` is true,
// adoptDatabase makes the schema in an empty file and brings an older schema up to date. A database with an older
// schema that cannot be written is read as it is. A file of another program, or with a newer schema version, is not
// changed. adoptDatabase waits for a locked file until `end`. Each later operation on the connection waits for a lock
// for at most five seconds.
FileVerdict adoptDatabase(sqlite::Connection &connection, bool mayWrite, Journal journal,
                          std::chrono::steady_clock::time_point end);

// Checks that the file is a pack, and sets the options of its connection; a pack is only read and never locked.
FileVerdict adoptPack(sqlite::Connection &connection);

} // namespace nsa
