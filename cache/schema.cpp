#include "cache/schema.h"

#include "runtime/base/manifest.h"

#include <array>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>

namespace nsa {

namespace {

using sqlite::Connection;

constexpr int kBusyTimeoutMs = 5000;

// Of sqlite's file format.
constexpr std::string_view kMagic("SQLite format 3\0", 16);
constexpr size_t kHeaderBytes = 100;
constexpr size_t kApplicationIdOffset = 68;

// The manifest's version has no column: every row of a schema holds the same one.
static_assert(kManifestVersion == 1 && kSchemaVersion == 2, "a new manifest version is a new schema version");

// PRAGMA application_id and user_version are part of the transaction, so a file is either without marks and
// empty or complete.
constexpr const char *kCreateTables = R"sql(
CREATE TABLE kernels (
  content      TEXT    NOT NULL PRIMARY KEY,
  template     TEXT    NOT NULL,
  operator     TEXT    NOT NULL,
  target       TEXT    NOT NULL,
  config       TEXT    NOT NULL,
  manifest     TEXT    NOT NULL,
  binary_bytes INTEGER NOT NULL,
  binary       BLOB    NOT NULL,
  digest       BLOB    NOT NULL
) STRICT;
CREATE TABLE choices (
  problem    TEXT    NOT NULL,
  device     TEXT    NOT NULL,
  content    TEXT    NOT NULL REFERENCES kernels (content),
  tuned      INTEGER NOT NULL CHECK (tuned IN (0, 1)),
  provenance TEXT    NOT NULL,
  PRIMARY KEY (problem, device)
) STRICT, WITHOUT ROWID;
CREATE INDEX choices_by_content ON choices (content);
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
PRAGMA application_id = 1314079051;
)sql";
// Since version 2.
constexpr const char *kCreateLeases = R"sql(
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
PRAGMA user_version = 2;
)sql";
static_assert(kApplicationId == 1314079051 && kSchemaVersion == 2, "the texts above repeat both numbers");

struct Marks {
  int64_t application = 0;
  int64_t version = 0;
  int64_t objects = 0; // all tables and indexes
  int64_t tables = 0;  // those of version 1
  int64_t leases = 0;  // the table of that name
  bool isEmpty() const { return application == 0 && version == 0 && objects == 0; }
  bool areOurs() const {
    return application == kApplicationId && tables == 3 && (version == 1 || (version == kSchemaVersion && leases == 1));
  }
};

int readMarks(Connection &connection, Marks &marks) {
  if (int code = connection.integer("PRAGMA application_id", marks.application))
    return code;
  if (int code = connection.integer("PRAGMA user_version", marks.version))
    return code;
  if (int code = connection.integer("SELECT count(*) FROM sqlite_schema", marks.objects))
    return code;
  if (int code = connection.integer("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'leases'",
                                    marks.leases))
    return code;
  return connection.integer("SELECT count(*) FROM sqlite_schema"
                            " WHERE type = 'table' AND name IN ('kernels', 'choices', 'evidence')",
                            marks.tables);
}

// From one moment of the database: another process may be making the schema.
int readMarksAtOnce(Connection &connection, Marks &marks) {
  if (int code = connection.execute("BEGIN"))
    return code;
  int code = readMarks(connection, marks);
  connection.execute("ROLLBACK");
  return code;
}

// Two processes that open a new or an older file at once both come here; the second finds the work done.
int completeSchema(Connection &connection, Marks &marks) {
  if (int code = connection.execute("BEGIN IMMEDIATE"))
    return code;
  int code = readMarks(connection, marks);
  bool isEmpty = marks.isEmpty();
  if (code == SQLITE_OK && isEmpty)
    code = connection.execute(kCreateTables);
  if (code == SQLITE_OK && (isEmpty || (marks.areOurs() && marks.version == 1)))
    code = connection.execute(kCreateLeases);
  if (code == SQLITE_OK)
    code = readMarks(connection, marks);
  if (code == SQLITE_OK)
    code = connection.execute("COMMIT");
  if (code != SQLITE_OK)
    connection.execute("ROLLBACK");
  return code;
}

// For what sqlite does not wait for by itself.
template <typename Attempt> int waitWhileBusy(Attempt attempt) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point end = Clock::now() + std::chrono::milliseconds(kBusyTimeoutMs);
  int code;
  while (((code = attempt()) & 0xff) == SQLITE_BUSY && Clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return code;
}

// Changing the mode needs the file alone. A file that stays in another mode (a file system without shared memory)
// works too, only slower.
void useWriteAheadLog(Connection &connection) {
  (void)waitWhileBusy([&] { return connection.execute("PRAGMA journal_mode = WAL"); });
}

} // namespace

FileVerdict verdictOf(int code) {
  switch (code & 0xff) { // the primary code of an extended one
  case SQLITE_OK:
    return FileVerdict::kUsable;
  case SQLITE_CORRUPT:
  case SQLITE_NOTADB:
  case SQLITE_ERROR: // "unsupported file format": the header does not hold
    return FileVerdict::kDamaged;
  case SQLITE_BUSY:
  case SQLITE_LOCKED:
    return FileVerdict::kLocked;
  default:
    return FileVerdict::kUnreachable;
  }
}

FileVerdict checkHeader(const Connection &connection) {
  std::array<std::byte, kHeaderBytes> header;
  size_t size = 0;
  if (int code = waitWhileBusy([&] { return connection.readHead(header, size); }))
    return verdictOf(code);
  if (size == 0)
    return FileVerdict::kUsable;
  if (size < header.size() || std::memcmp(header.data(), kMagic.data(), kMagic.size()) != 0)
    return FileVerdict::kForeign;
  uint32_t application = 0;
  for (size_t i = 0; i < sizeof application; ++i)
    application = application << 8 | std::to_integer<uint32_t>(header[kApplicationIdOffset + i]);
  return application == kApplicationId ? FileVerdict::kUsable : FileVerdict::kForeign;
}

FileVerdict adoptDatabase(Connection &connection, bool mayWrite) {
  connection.setBusyTimeout(kBusyTimeoutMs);
  Marks marks;
  if (int code = readMarksAtOnce(connection, marks))
    return verdictOf(code);
  bool isEmpty = marks.isEmpty();
  if (!isEmpty && marks.application != kApplicationId)
    return FileVerdict::kForeign;
  if (marks.version > kSchemaVersion)
    return FileVerdict::kNewer;

  mayWrite = mayWrite && !connection.isReadOnly();
  // The schema comes before the log: while the mark is in the log alone, the header does not say whose file it is.
  if (isEmpty && !mayWrite)
    return FileVerdict::kUnreachable;
  if (isEmpty || (mayWrite && marks.areOurs() && marks.version < kSchemaVersion)) {
    if (int code = completeSchema(connection, marks))
      return verdictOf(code);
  }
  if (mayWrite)
    useWriteAheadLog(connection);
  // NORMAL survives a killed process; a power cut may lose the last rows but not the file.
  // trusted_schema and cell_size_check: the file may have been damaged or made by someone else.
  if (int code = connection.execute("PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;"
                                    "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON"))
    return verdictOf(code);
  return marks.areOurs() ? FileVerdict::kUsable : FileVerdict::kDamaged;
}

} // namespace nsa
