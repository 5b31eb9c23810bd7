#include "cache/database/known_schema.h"

#include "cache/database/tables.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace nsa {

namespace {

using sqlite::Query;

constexpr const char *kReadSchema = "SELECT type, name, sql FROM sqlite_schema";
// Of a PRIMARY KEY or UNIQUE; sqlite refuses one that belongs to no table.
constexpr std::string_view kAutomaticIndex = "sqlite_autoindex_";

// Before version 3.
constexpr std::string_view kKernelsWithDigestLast = R"sql(CREATE TABLE kernels (
  content      TEXT    NOT NULL PRIMARY KEY,
  template     TEXT    NOT NULL,
  operator     TEXT    NOT NULL,
  target       TEXT    NOT NULL,
  config       TEXT    NOT NULL,
  manifest     TEXT    NOT NULL,
  binary_bytes INTEGER NOT NULL,
  binary       BLOB    NOT NULL,
  digest       BLOB    NOT NULL
) STRICT)sql";

// What ANALYZE leaves behind in a database. No digest covers its rows, so a pack has none.
constexpr std::string_view kStatistics[] = {"CREATE TABLE sqlite_stat1(tbl,idx,stat)",
                                            "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)"};

// "kernels" of "CREATE TABLE kernels (...".
std::string_view nameIn(std::string_view statement) {
  for (const std::string_view begin : {"CREATE TABLE ", "CREATE INDEX "})
    if (statement.starts_with(begin))
      statement.remove_prefix(begin.size());
  return statement.substr(0, statement.find_first_of(" ("));
}

// Names by statements. sqlite keeps a statement as it was written, without what stands around it.
std::map<std::string_view, std::string_view> makeKnown() {
  std::map<std::string_view, std::string_view> known;
  const auto add = [&](std::string_view statement) { known[statement] = nameIn(statement); };
  add(kKernelsWithDigestLast);
  add(kCreateChoiceIndex);
  for (const std::string_view statement : kStatistics)
    add(statement);
  for (std::string_view tables : {kCreateKernels, kCreateLeases, kCreateUses, kCreateRoutes, kCreatePack})
    for (size_t end; (end = tables.find(';')) != std::string_view::npos; tables.remove_prefix(end + 1))
      add(tables.substr(tables.find_first_not_of('\n'), end - tables.find_first_not_of('\n')));
  return known;
}

} // namespace

int readSchema(sqlite::Connection &connection, SchemaFound &found) {
  static const std::map<std::string_view, std::string_view> known = makeKnown();
  found = {};
  std::set<std::string_view> names;
  Query query(connection, kReadSchema);
  while (query.step()) {
    ++found.objects;
    const std::string sql = query.text(2);
    const bool isAutomatic = sql.empty() && query.text(0) == "index" && query.text(1).starts_with(kAutomaticIndex);
    const auto object = known.find(sql);
    found.isKnown = found.isKnown && (isAutomatic || object != known.end());
    if (object != known.end())
      names.insert(object->second);
  }
  const auto has = [&](std::initializer_list<const char *> tables) {
    return std::ranges::all_of(tables, [&](const char *table) { return names.contains(table); });
  };
  found.hasKernels = has({"kernels", "choices", "evidence"});
  found.hasLeases = has({"leases"});
  found.hasRoutes = has({"routes", "route_evidence"});
  found.hasUses = has({"uses"});
  found.hasPack = has({"pack"});
  found.hasStatistics = has({"sqlite_stat1"}) || has({"sqlite_stat4"});
  return query.code();
}

} // namespace nsa
