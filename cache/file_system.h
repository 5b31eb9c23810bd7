// Says what kind of file system a file is on. A write-ahead log keeps its index in memory that all its users share, and
// hosts of a network share no memory. A database on a network file system therefore uses the older rollback journal.
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
// Returns the name of the network file system that a directory is on. The name is "" for any other file system, and if
// the system does not tell.
std::string networkFileSystemOf(const std::filesystem::path &directory);

} // namespace nsa
