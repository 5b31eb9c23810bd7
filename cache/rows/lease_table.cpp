#include "cache/rows/lease_table.h"

namespace nsa {

namespace {

using sqlite::Connection;
using sqlite::Query;

constexpr const char *kSelectLease = "SELECT owner, host, pid, started, expires FROM leases"
                                     " WHERE problem = ?1 AND device = ?2 AND work = ?3";
constexpr const char *kReplace =
    "INSERT OR REPLACE INTO leases (problem, device, work, owner, host, pid, started, expires)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
constexpr const char *kRenew = "UPDATE leases SET expires = ?5"
                               " WHERE problem = ?1 AND device = ?2 AND work = ?3 AND owner = ?4";
constexpr const char *kDeleteLease =
    "DELETE FROM leases WHERE problem = ?1 AND device = ?2 AND work = ?3 AND owner = ?4";

void bindKey(Query &query, const LeaseKey &key) { query.bind(1, key.problem).bind(2, key.device).bind(3, key.work); }

} // namespace

int readLease(Connection &connection, const LeaseKey &key, std::optional<LeaseRow> &row) {
  Query query(connection, kSelectLease);
  bindKey(query, key);
  row.reset();
  if (query.step())
    row = {query.text(0), {query.text(1), query.integer(2), query.integer(3)}, query.integer(4)};
  return query.code();
}

int writeLease(Connection &connection, const LeaseKey &key, const LeaseRow &row) {
  Query query(connection, kReplace);
  bindKey(query, key);
  return query.bind(4, row.owner)
      .bind(5, row.process.host)
      .bind(6, row.process.pid)
      .bind(7, row.process.started)
      .bind(8, row.expiresMs)
      .run();
}

int renewLease(Connection &connection, const LeaseKey &key, const std::string &owner, int64_t expiresMs) {
  Query query(connection, kRenew);
  bindKey(query, key);
  return query.bind(4, owner).bind(5, expiresMs).run();
}

int deleteLease(Connection &connection, const LeaseKey &key, const std::string &owner) {
  Query query(connection, kDeleteLease);
  bindKey(query, key);
  return query.bind(4, owner).run();
}

} // namespace nsa
