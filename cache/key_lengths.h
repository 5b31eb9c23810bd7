// The longest key that a row of a file may have. A row is found by its key in a tree, and each comparison on the way
// reads a whole key of the tree. With one long key near the root, a file could make each of its many rows as expensive
// as that key: the time would grow with the square of the file's size, within one step of sqlite, which no limit of
// steps ends. Our keys have some hundred bytes. Thread-safety: none, as the connection.
#pragma once

#include "cache/sqlite.h"
#include "runtime/base/status.h"

#include <cstddef>
#include <string>

namespace nsa {

inline constexpr size_t kMostKeyBytes = 4096;

// Reads the keys in the order of their trees, which finds no row by its key. The few keys of the table `pack` are not
// looked at: its rows are never found by one. `path` stands in the error.
Status checkKeyLengths(sqlite::Connection &connection, const std::string &path);

} // namespace nsa
