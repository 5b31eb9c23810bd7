// Limits the keys of a file's rows. A row is found by its key in a tree, and each comparison on the way reads a whole
// key of the tree. A file with one long key near the root could make each of its many rows as expensive as that key.
// The time of lookups by long keys would grow with the square of the file's size, within a single step of sqlite, so a
// limit of steps does not help. The keys that NSA Runtime writes have some hundred bytes.
// Thread-safety: none, like the connection.
#pragma once

#include "cache/sqlite.h"
#include "runtime/base/status.h"

#include <cstddef>
#include <string>

namespace nsa {

inline constexpr size_t kMostKeyBytes = 4096;

// The check of key lengths reads the keys in the order of their trees, which finds no row by its key. The few keys of
// the table `pack` are not checked, because no row of it is found by its key. `path` names the file in the error.
Status checkKeyLengths(sqlite::Connection &connection, const std::string &path);

} // namespace nsa
