#include "cache/database/key_lengths.h"

#include "cache/database/known_schema.h"

#include <string_view>

namespace nsa {

namespace {

struct Keys {
  bool SchemaFound::*isThere;
  std::string_view table;
  int columns; // of which each is a part of a key
  const char *sql;
};

// Without an order sqlite takes the smallest tree that has the columns: an index, where there is one.
constexpr Keys kKeys[] = {
    {&SchemaFound::hasKernels, "kernels", 1, "SELECT content FROM kernels ORDER BY content"},
    {&SchemaFound::hasKernels, "choices", 2, "SELECT problem, device FROM choices ORDER BY problem, device"},
    {&SchemaFound::hasKernels, "choices", 1, "SELECT content FROM choices"},
    {&SchemaFound::hasKernels, "evidence", 2, "SELECT problem, device FROM evidence ORDER BY problem, device"},
    {&SchemaFound::hasRoutes, "routes", 3, "SELECT family, device, name FROM routes ORDER BY family, device, name"},
    {&SchemaFound::hasRoutes, "route_evidence", 3,
     "SELECT family, device, name FROM route_evidence ORDER BY family, device, name"},
    {&SchemaFound::hasLeases, "leases", 3, "SELECT problem, device, work FROM leases ORDER BY problem, device, work"},
    {&SchemaFound::hasUses, "uses", 1, "SELECT content FROM uses ORDER BY content"},
};

Status broken(const std::string &path, const std::string &reason, std::string hint = "") {
  return Status::error(ErrorCode::kIoError, "cache file '" + path + "': " + reason, std::move(hint));
}

} // namespace

Status checkKeyLengths(sqlite::Connection &connection, const std::string &path) {
  SchemaFound schema;
  if (const int code = readSchema(connection, schema))
    return broken(path, sqlite3_errstr(code));
  for (const Keys &keys : kKeys) {
    if (!(schema.*keys.isThere))
      continue;
    sqlite::Query query(connection, keys.sql);
    while (query.step())
      for (int column = 0; column < keys.columns; ++column)
        if (const size_t bytes = query.text(column).size(); bytes > kMostKeyBytes)
          return broken(path,
                        "a key of its table " + std::string(keys.table) + " has " + std::to_string(bytes) +
                            " bytes, must have at most " + std::to_string(kMostKeyBytes),
                        "this library writes no such key: take the file again from where it was made");
    if (const int code = query.code())
      return broken(path, sqlite3_errstr(code));
  }
  return Status::ok();
}

} // namespace nsa
