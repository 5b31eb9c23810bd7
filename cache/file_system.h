// What kind of disk a file is on. A write-ahead log keeps its index in memory that all its users share, which hosts of
// a network cannot: there the older rollback journal is used. Thread-safety: pure functions of the file system.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace nsa {

enum class Journal { kWriteAheadLog, kRollback };

// The name of a network file system by statfs's f_type, as "NFS"; "" for every other.
std::string networkFileSystem(uint64_t type);
// Of the file system that a directory is on; "" also when that cannot be asked.
std::string networkFileSystemOf(const std::filesystem::path &directory);

} // namespace nsa
