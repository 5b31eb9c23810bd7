// Reads and writes rows of the tables `routes` and `route_evidence`, which hold measured thresholds between algorithms.
// A file with an older schema version does not have the tables `routes` and `route_evidence`, and so it has no routes.
// All functions of route_rows.h return sqlite's own codes. Thread-safety: none, like the connection.
#pragma once

#include "cache/database/sqlite.h"
#include "cache/rows/rows.h"

#include <optional>

namespace nsa {

int readRoute(sqlite::Connection &connection, const std::string &family, const std::string &device,
              const std::string &name, std::optional<StoredRoute> &route);
// Lists all routes in ascending order of family, device and name.
int listRouteRows(sqlite::Connection &connection, std::vector<StoredRoute> &routes);
// Stores a route and its evidence, and replaces a stored route of the same family, device and name.
int writeRouteRow(sqlite::Connection &connection, const StoredRoute &route);

} // namespace nsa
