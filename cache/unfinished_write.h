// Handles a rollback journal that a writer left when it died. The file beside it is between two states, and sqlite
// reads no such file before the old pages are back.
// Thread-safety: several processes may look at one file, and mend it, at once.
#pragma once

#include "cache/file_system.h"
#include "cache/schema.h"

#include <chrono>
#include <filesystem>

namespace nsa {

// Whether there is a journal beside the file. Its writer may have died, or may still be writing.
bool hasJournal(const std::filesystem::path &path);

// Takes back the write of a writer that died: the file becomes what it was before. Waits for a locked file until `end`.
// kUsable: it is done, or there is nothing to do, for example because another process has just done it. kUnreachable:
// this process has no right to do it; or the writer may still live. The latter concerns a `journal` of network file
// systems: hosts do not always see each other's locks, so there the journal must not have changed for a minute. Any
// other verdict says what the file is instead, and nothing was changed.
FileVerdict takeBackUnfinished(const std::filesystem::path &path, Journal journal,
                               std::chrono::steady_clock::time_point end);

} // namespace nsa
