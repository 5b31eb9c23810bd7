// Finds out which kind of file system a file is on. sqlite keeps the index of a write-ahead log in shared memory, and
// the hosts of a network file system share no memory. A database on a network file system therefore uses the older
// rollback journal.
// Thread-safety: file_system.h has only pure functions of the file system.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace nsa {

enum class Journal { kWriteAheadLog, kRollback };

// The name of a network file system by the f_type of statfs, such as "NFS". The name is "" for a file system that is
// not a network file system.
std::string networkFileSystem(uint64_t type);
// Returns the name of the network file system that a directory is on. The name is "" for a file system that is not a
// network file system, and when the operating system does not tell which file system it is.
std::string networkFileSystemOf(const std::filesystem::path &directory);

} // namespace nsa
