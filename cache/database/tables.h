// The tables of a kernel database and of a pack, as SQL. docs/cache_format.md repeats them and explains each column.
// The order of columns does not matter to statements that name their columns. The binary is the last column of the
// table `kernels`, so that reading the other columns of a row does not read past the binary.
// Thread-safety: constants.
#pragma once

#include <cstdint>

namespace nsa {

inline constexpr int64_t kApplicationId = 0x4e53414b;     // "NSAK": a kernel database
inline constexpr int64_t kPackApplicationId = 0x4e534150; // "NSAP": a pack
inline constexpr int64_t kSchemaVersion = 3;              // user_version of both
inline constexpr int64_t kSchemaWithRoutes = 3;           // the first version with the tables routes and uses

// Since version 1.
inline constexpr const char *kCreateKernels = R"sql(
CREATE TABLE kernels (
  content      TEXT    NOT NULL PRIMARY KEY,
  template     TEXT    NOT NULL,
  operator     TEXT    NOT NULL,
  target       TEXT    NOT NULL,
  config       TEXT    NOT NULL,
  manifest     TEXT    NOT NULL,
  digest       BLOB    NOT NULL,
  binary_bytes INTEGER NOT NULL,
  binary       BLOB    NOT NULL
) STRICT;
CREATE TABLE choices (
  problem    TEXT    NOT NULL,
  device     TEXT    NOT NULL,
  content    TEXT    NOT NULL REFERENCES kernels (content),
  tuned      INTEGER NOT NULL CHECK (tuned IN (0, 1)),
  provenance TEXT    NOT NULL,
  PRIMARY KEY (problem, device)
) STRICT, WITHOUT ROWID;
CREATE TABLE evidence (
  problem      TEXT    NOT NULL,
  device       TEXT    NOT NULL,
  position     INTEGER NOT NULL,
  template     TEXT    NOT NULL,
  config       TEXT    NOT NULL,
  outcome      TEXT    NOT NULL,
  milliseconds REAL    NOT NULL,
  ratio        REAL    NOT NULL,
  detail       TEXT    NOT NULL,
  PRIMARY KEY (problem, device, position),
  FOREIGN KEY (problem, device) REFERENCES choices (problem, device) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
)sql";

// Serves collections. A pack does not have the table `uses`, because no kernel is removed from a pack.
inline constexpr const char *kCreateChoiceIndex = "CREATE INDEX choices_by_content ON choices (content)";

// The table `leases` exists since schema version 2, and only in databases.
inline constexpr const char *kCreateLeases = R"sql(
CREATE TABLE leases (
  problem TEXT    NOT NULL,
  device  TEXT    NOT NULL,
  work    TEXT    NOT NULL,
  owner   TEXT    NOT NULL,
  host    TEXT    NOT NULL,
  pid     INTEGER NOT NULL,
  started INTEGER NOT NULL,
  expires INTEGER NOT NULL,
  PRIMARY KEY (problem, device, work)
) STRICT, WITHOUT ROWID;
)sql";

// The table `uses` exists since schema version 3, and only in databases. When a file with an older schema is updated,
// its kernels are recorded as used on the day of the update.
inline constexpr const char *kCreateUses = R"sql(
CREATE TABLE uses (
  content TEXT    NOT NULL PRIMARY KEY,
  day     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO uses (content, day) SELECT content, CAST(strftime('%s', 'now') AS INTEGER) / 86400 FROM kernels;
)sql";

// Since version 3.
inline constexpr const char *kCreateRoutes = R"sql(
CREATE TABLE routes (
  family     TEXT    NOT NULL,
  device     TEXT    NOT NULL,
  name       TEXT    NOT NULL,
  threshold  INTEGER NOT NULL CHECK (threshold >= -1),
  provenance TEXT    NOT NULL,
  PRIMARY KEY (family, device, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE route_evidence (
  family       TEXT    NOT NULL,
  device       TEXT    NOT NULL,
  name         TEXT    NOT NULL,
  position     INTEGER NOT NULL,
  size         INTEGER NOT NULL,
  variant      TEXT    NOT NULL,
  milliseconds REAL    NOT NULL,
  ratio        REAL    NOT NULL,
  detail       TEXT    NOT NULL,
  PRIMARY KEY (family, device, name, position),
  FOREIGN KEY (family, device, name) REFERENCES routes (family, device, name) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
)sql";

// Only in a pack.
inline constexpr const char *kCreatePack = R"sql(
CREATE TABLE pack (
  key   TEXT NOT NULL PRIMARY KEY,
  value BLOB NOT NULL
) STRICT, WITHOUT ROWID;
)sql";

} // namespace nsa
