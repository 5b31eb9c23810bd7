// Reads and writes rows of the table `leases`: which process is making which kernel or choice, and until when.
// docs/cache_format.md has the columns and the rules. KeyLease (cache/lease.h) applies the rules about the time at
// which a lease ends.
// Thread-safety: none, like the connection.
#pragma once

#include "cache/database/process_identity.h"
#include "cache/database/sqlite.h"

#include <optional>
#include <string>

namespace nsa {

struct LeaseKey {
  std::string problem;
  std::string device;
  std::string work; // what is made; "default" and "tune" do not wait for each other
};

struct LeaseRow {
  std::string owner; // a random text for each lease
  ProcessIdentity process;
  int64_t expiresMs = 0; // wall clock, since 1970; only processes of other hosts use it
  bool operator==(const LeaseRow &) const = default;
};

// All return sqlite's own codes.
int readLease(sqlite::Connection &connection, const LeaseKey &key, std::optional<LeaseRow> &row);
int writeLease(sqlite::Connection &connection, const LeaseKey &key, const LeaseRow &row);
int renewLease(sqlite::Connection &connection, const LeaseKey &key, const std::string &owner, int64_t expiresMs);
int deleteLease(sqlite::Connection &connection, const LeaseKey &key, const std::string &owner);

} // namespace nsa
