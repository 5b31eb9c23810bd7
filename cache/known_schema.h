// Whether the schema of a file is one that this library makes, or has made. It is looked at before any other statement
// runs: a generated column, a view, a trigger or an index on an expression is SQL of the file's writer.
// Thread-safety: none, as the connection.
#pragma once

#include "cache/sqlite.h"

#include <cstdint>

namespace nsa {

struct SchemaFound {
  int64_t objects = 0;     // tables, indexes and all else
  bool isKnown = true;     // each of them is, to the letter, one that this library makes
  bool hasKernels = false; // the tables kernels, choices and evidence
  bool hasLeases = false;
  bool hasRoutes = false; // the tables routes and route_evidence
  bool hasUses = false;
  bool hasPack = false;
  bool hasStatistics = false;
};

// sqlite's own code.
int readSchema(sqlite::Connection &connection, SchemaFound &found);

} // namespace nsa
