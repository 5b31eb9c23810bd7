#include "cache/rows/route_rows.h"

namespace nsa {

namespace {

using sqlite::Connection;
using sqlite::Query;

constexpr const char *kHasRouteTables = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'routes'";
#define NSA_SELECT_ROUTES                                                                                              \
  "SELECT r.family, r.device, r.name, r.threshold, r.provenance,"                                                      \
  " e.size, e.variant, e.milliseconds, e.ratio, e.detail, e.position IS NOT NULL"                                      \
  " FROM routes AS r LEFT JOIN route_evidence AS e USING (family, device, name)"
constexpr const char *kSelectRoute =
    NSA_SELECT_ROUTES " WHERE r.family = ?1 AND r.device = ?2 AND r.name = ?3 ORDER BY e.position";
constexpr const char *kListRoutes = NSA_SELECT_ROUTES " ORDER BY r.family, r.device, r.name, e.position";
#undef NSA_SELECT_ROUTES

constexpr const char *kPutRoute =
    "INSERT INTO routes (family, device, name, threshold, provenance) VALUES (?1, ?2, ?3, ?4, ?5)"
    " ON CONFLICT (family, device, name) DO UPDATE SET threshold = excluded.threshold,"
    " provenance = excluded.provenance";
constexpr const char *kDeleteRouteEvidence =
    "DELETE FROM route_evidence WHERE family = ?1 AND device = ?2 AND name = ?3";
constexpr const char *kPutRouteEvidence =
    "INSERT INTO route_evidence (family, device, name, position, size, variant, milliseconds, ratio, detail)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";

int hasTables(Connection &connection, bool &has) {
  int64_t count = 0;
  const int code = connection.integer(kHasRouteTables, count);
  has = count == 1;
  return code;
}

int takeRoutes(Query &query, std::vector<StoredRoute> &routes) {
  while (query.step()) {
    std::string family = query.text(0), device = query.text(1), name = query.text(2);
    if (routes.empty() || routes.back().family != family || routes.back().device != device ||
        routes.back().name != name)
      routes.push_back({std::move(family), std::move(device), std::move(name), query.integer(3), query.text(4), {}});
    if (query.integer(10) == 1)
      routes.back().evidence.push_back({query.integer(5), query.text(6), query.real(7), query.real(8), query.text(9)});
  }
  return query.code();
}

} // namespace

int readRoute(Connection &connection, const std::string &family, const std::string &device, const std::string &name,
              std::optional<StoredRoute> &route) {
  route.reset();
  bool has = false;
  if (const int code = hasTables(connection, has); code != SQLITE_OK || !has)
    return code;
  std::vector<StoredRoute> routes;
  Query query(connection, kSelectRoute, family, device, name);
  const int code = takeRoutes(query, routes);
  if (code == SQLITE_OK && !routes.empty())
    route = std::move(routes.front());
  return code;
}

int listRouteRows(Connection &connection, std::vector<StoredRoute> &routes) {
  bool has = false;
  if (const int code = hasTables(connection, has); code != SQLITE_OK || !has)
    return code;
  Query query(connection, kListRoutes);
  return takeRoutes(query, routes);
}

int writeRouteRow(Connection &connection, const StoredRoute &route) {
  const auto &[family, device, name, threshold, provenance, evidence] = route;
  int code = Query(connection, kPutRoute, family, device, name, threshold, provenance).run();
  if (code == SQLITE_OK)
    code = Query(connection, kDeleteRouteEvidence, family, device, name).run();
  for (size_t i = 0; code == SQLITE_OK && i < evidence.size(); ++i) {
    const RouteMeasurement &measured = evidence[i];
    code = Query(connection, kPutRouteEvidence, family, device, name, static_cast<int64_t>(i), measured.size,
                 measured.variant, measured.milliseconds, measured.ratio, measured.detail)
               .run();
  }
  return code;
}

} // namespace nsa
