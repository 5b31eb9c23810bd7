// The rows of the tables `routes` and `route_evidence`: measured thresholds between algorithms. A file of an older
// schema has neither, and so no route.
// Thread-safety: none, as the connection.
#pragma once

#include "cache/rows.h"
#include "cache/sqlite.h"

#include <optional>

namespace nsa {

// All return sqlite's own codes.
int readRoute(sqlite::Connection &connection, const std::string &family, const std::string &device,
              const std::string &name, std::optional<StoredRoute> &route);
// Ascending by family, device and name.
int listRouteRows(sqlite::Connection &connection, std::vector<StoredRoute> &routes);
// Replaces the route and its evidence.
int writeRouteRow(sqlite::Connection &connection, const StoredRoute &route);

} // namespace nsa
