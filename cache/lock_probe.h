// Finds out whether a file system supports file locks at all. A file system without a lock service may report that
// another process has locked the file (ENOLCK becomes SQLITE_BUSY), and waiting for that process would be in vain.
// Thread-safety: lock_probe.h has only pure functions of the file system.
#pragma once

#include <filesystem>

namespace nsa {

// Makes a new file with a random name in the folder of `path`, and locks it. No other process can have locked the new
// file, so the answer that it is locked means that the file system does not support locks. canLockBeside takes a
// fraction of a second. It returns false only after several answers that the new file is locked.
bool canLockBeside(const std::filesystem::path &path);

} // namespace nsa
