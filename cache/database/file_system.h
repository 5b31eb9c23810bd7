// Finds out which kind of file system a file is on. sqlite keeps the index of a write-ahead log in shared memory, and
// the hosts of a network file system share no memory. Therefore sqlite must use a rollback journal, and not a
// write-ahead log, for a database on a network file system.
// Thread-safety: file_system.h has only pure functions of the file system.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace nsa {

enum class Journal { kWriteAheadLog, kRollback };

// Returns the name of the network file system whose statfs has the f_type `type`, such as "NFS". networkFileSystem
// returns "" for all other file systems.
std::string networkFileSystem(uint64_t type);
// Returns the name of the network file system that a directory is on. networkFileSystemOf returns "" for a directory on
// another kind of file system, and if statfs fails.
std::string networkFileSystemOf(const std::filesystem::path &directory);

} // namespace nsa
