// The rows of the table `leases`: who is making what, and until when. docs/cache_format.md has the columns and the
// rules; those that take time are KeyLease's (cache/lease.h).
// Thread-safety: none, as the connection.
#pragma once

#include "cache/process_identity.h"
#include "cache/sqlite.h"

#include <optional>
#include <string>

namespace nsa {

struct LeaseKey {
  std::string problem;
  std::string device;
  std::string work; // what is made: "default" and "tune" do not wait for each other
};

struct LeaseRow {
  std::string owner; // drawn for each lease
  ProcessIdentity process;
  int64_t expiresMs = 0; // since 1970: wall clock, for processes of other hosts only
  bool operator==(const LeaseRow &) const = default;
};

// sqlite's own codes.
int readLease(sqlite::Connection &connection, const LeaseKey &key, std::optional<LeaseRow> &row);
int writeLease(sqlite::Connection &connection, const LeaseKey &key, const LeaseRow &row);
int renewLease(sqlite::Connection &connection, const LeaseKey &key, const std::string &owner, int64_t expiresMs);
int deleteLease(sqlite::Connection &connection, const LeaseKey &key, const std::string &owner);

} // namespace nsa
