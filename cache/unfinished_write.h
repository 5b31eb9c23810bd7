// A rollback journal that a writer left when it died: the file beside it is between two states, and sqlite reads no
// such file before the old pages are back. Thread-safety: distinct processes may look at, and mend, one file at once.
#pragma once

#include "cache/file_system.h"
#include "cache/schema.h"

#include <chrono>
#include <filesystem>

namespace nsa {

// Whether a journal lies beside the file. Its writer may have died, or be at it.
bool hasJournal(const std::filesystem::path &path);

// Takes back what a dead writer had begun: the file is then what it was before. kUsable: done, or there is nothing to
// do, as when another process has just done it. kUnreachable: there is no right to, or (`journal` is that of networks)
// the writer may live: a lock of another host is not seen everywhere, so the journal must have been left alone for a
// minute. Otherwise what the file is instead, and nothing was changed. A locked file is waited for until `end`.
FileVerdict takeBackUnfinished(const std::filesystem::path &path, Journal journal,
                               std::chrono::steady_clock::time_point end);

} // namespace nsa
