// Checks whether the schema of a file is a schema that this or an older version of NSA Runtime makes. The schema must
// be checked before any other statement runs, because a generated column, a view, a trigger or an index on an
// expression is SQL that the file's writer chose.
// Thread-safety: none, like the connection.
#pragma once

#include "cache/database/sqlite.h"

#include <cstdint>

namespace nsa {

struct SchemaFound {
  int64_t objects = 0;     // tables, indexes and all other entries of the schema
  bool isKnown = true;     // the text of each entry is exactly one that this library makes
  bool hasKernels = false; // the tables kernels, choices and evidence
  bool hasLeases = false;
  bool hasRoutes = false; // the tables routes and route_evidence
  bool hasUses = false;
  bool hasPack = false;
  bool hasStatistics = false;
};

// Returns sqlite's own code.
int readSchema(sqlite::Connection &connection, SchemaFound &found);

} // namespace nsa
