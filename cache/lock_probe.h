// Whether a file system gives locks at all. One without a lock service may answer as if another process had locked the
// file (ENOLCK is SQLITE_BUSY to sqlite), and waiting for that one would be in vain.
// Thread-safety: pure functions of the file system.
#pragma once

#include <filesystem>

namespace nsa {

// Locks a new file of its own beside `path`, of which nobody else knows: who is told that it is locked has no locks.
// Takes a fraction of a second; false only when that was the answer several times.
bool canLockBeside(const std::filesystem::path &path);

} // namespace nsa
