// Finds out whether a file system supports file locks at all. A file system without a lock service may report that
// another process has locked the file (ENOLCK becomes SQLITE_BUSY), and a caller would wait in vain for that process.
// Thread-safety: canLockBeside may be called by many threads at once.
#pragma once

#include <filesystem>

namespace nsa {

// Makes a new file with a random name in the folder of `path`, and tries to lock the new file several times. No other
// process can have locked the new file, because no other process knows the random name. If sqlite reports at every
// attempt that the new file is locked or that locks are missing, the file system does not support locks, and
// canLockBeside returns false. canLockBeside takes a fraction of a second.
bool canLockBeside(const std::filesystem::path &path);

} // namespace nsa
