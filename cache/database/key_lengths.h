// Limits the length of the keys in the rows of a file. sqlite finds a row by its key in a search tree, and reads a
// whole key of the tree for each comparison. With one long key near the root of the tree, the lookup of every row would
// have to read that long key. In a file with many long keys, the time of lookups could grow with the square of the
// file's size. sqlite finds a row within a single one of its steps, so the limit on the steps of a query does not end a
// slow lookup. A key that NSA Runtime itself writes into a file has at most a few hundred bytes.
// Thread-safety: none, like the connection.
#pragma once

#include "cache/database/sqlite.h"
#include "runtime/base/status.h"

#include <cstddef>
#include <string>

namespace nsa {

inline constexpr size_t kMostKeyBytes = 4096;

// The check of key lengths walks through the keys in the order of the tree, so it does not look up any row by its key.
// The few keys of the table `pack` are not checked, because rows of that table are not looked up by key. The text of an
// error contains `path`.
Status checkKeyLengths(sqlite::Connection &connection, const std::string &path);

} // namespace nsa
