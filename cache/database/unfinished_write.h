// Handles a rollback journal that a writer left when it died. While a rollback journal exists, the database is between
// two states, and sqlite does not read it before the old pages are restored.
// Thread-safety: several processes may look at one file, and mend it, at once.
#pragma once

#include "cache/database/file_system.h"
#include "cache/database/schema.h"

#include <chrono>
#include <filesystem>

namespace nsa {

// Returns whether the database file has a rollback journal. The process that made the rollback journal may have died,
// or may still be writing.
bool hasJournal(const std::filesystem::path &path);

// Undoes the write of a writer that died: the file becomes what it was before. takeBackUnfinished waits for a locked
// file until `end`. kUsable means that the write is undone or that there is nothing to undo, for example because
// another process has just done it. kUnreachable means that this process has no right to undo the write, or that the
// writer may still live. On a network file system, hosts do not always see each other's locks, so a lock does not show
// whether the writer is alive. If `journal` is kRollback, the mode for network file systems, takeBackUnfinished undoes
// a write only if the journal file has not changed for a minute. A verdict other than kUsable and kUnreachable says why
// the file cannot be used as a database; the file was not changed.
FileVerdict takeBackUnfinished(const std::filesystem::path &path, Journal journal,
                               std::chrono::steady_clock::time_point end);

} // namespace nsa
