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

} // namespace

int readLease(Connection &connection, const LeaseKey &key, std::optional<LeaseRow> &row) {
  Query query(connection, kSelectLease, key.problem, key.device, key.work);
  row.reset();
  if (query.step())
    row = {query.text(0), {query.text(1), query.integer(2), query.integer(3)}, query.integer(4)};
  return query.code();
}

int writeLease(Connection &connection, const LeaseKey &key, const LeaseRow &row) {
  return Query(connection, kReplace, key.problem, key.device, key.work, row.owner, row.process.host, row.process.pid,
               row.process.started, row.expiresMs)
      .run();
}

int renewLease(Connection &connection, const LeaseKey &key, const std::string &owner, int64_t expiresMs) {
  return Query(connection, kRenew, key.problem, key.device, key.work, owner, expiresMs).run();
}

int deleteLease(Connection &connection, const LeaseKey &key, const std::string &owner) {
  return Query(connection, kDeleteLease, key.problem, key.device, key.work, owner).run();
}

} // namespace nsa
