// Says what kind of file system a file is on. A write-ahead log keeps its index in memory that all its users share, and
// hosts of a network share no memory. So a file on a network file system uses the older rollback journal.
// Thread-safety: pure functions of the file system.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace nsa {

enum class Journal { kWriteAheadLog, kRollback };

// The name of a network file system by the f_type of statfs, such as "NFS". "" for every other file system.
std::string networkFileSystem(uint64_t type);
// The same for the file system that a directory is on. "" also when the system does not tell.
std::string networkFileSystemOf(const std::filesystem::path &directory);

} // namespace nsa
