#include "cache/database/schema.h"

#include "cache/database/known_schema.h"
#include "runtime/base/manifest.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <thread>

namespace nsa {

namespace {

using sqlite::Connection;
using sqlite::Query;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Of one operation on an open file.
constexpr milliseconds kBusyTimeout{5000};
// The wait for the right to change the journal mode. Changing it is not necessary, and the process that has the right
// may be about to change it.
constexpr milliseconds kModeTimeout{1000};
// Between two looks at a file that another process keeps locked: while many look, few would get anything done.
constexpr milliseconds kFirstPause{1}, kLongestPause{20};

// Of sqlite's file format.
constexpr std::string_view kMagic("SQLite format 3\0", 16);
constexpr size_t kHeaderBytes = 100;
constexpr size_t kApplicationIdOffset = 68;
constexpr size_t kPageCountOffset = 28; // of the database, in pages
constexpr size_t kUserVersionOffset = 60;
constexpr size_t kReadVersionOffset = 19;
constexpr std::byte kLogReadVersion{2}; // readers must know of write-ahead logs

// The manifest's version has no column: every row of a schema holds the same one.
static_assert(kManifestVersion == 1 && kSchemaVersion == 3, "a new manifest version is a new schema version");

struct Marks {
  int64_t application = 0;
  int64_t version = 0;
  SchemaFound schema;
  bool isEmpty() const { return application == 0 && version == 0 && schema.objects == 0; }
  bool areOurs() const {
    return application == kApplicationId && schema.isKnown && schema.hasKernels && !schema.hasPack && version >= 1 &&
           version <= kSchemaVersion && (version < 2 || schema.hasLeases) &&
           (version < 3 || (schema.hasUses && schema.hasRoutes));
  }
  bool areOfPack() const {
    return application == kPackApplicationId && schema.isKnown && version == kSchemaVersion && schema.hasKernels &&
           schema.hasRoutes && schema.hasPack && !schema.hasUses && !schema.hasLeases && !schema.hasStatistics;
  }
  bool lackTables() const { return isEmpty() || (areOurs() && version < kSchemaVersion); }
  FileVerdict verdict(FileKind kind) const {
    if (!isEmpty() && application != applicationOf(kind))
      return FileVerdict::kForeign;
    if (version > kSchemaVersion)
      return FileVerdict::kNewer;
    return (kind == FileKind::kPack ? areOfPack() : areOurs()) ? FileVerdict::kUsable : FileVerdict::kDamaged;
  }
};

int readMarks(Connection &connection, Marks &marks) {
  if (int code = connection.integer("PRAGMA application_id", marks.application))
    return code;
  if (int code = connection.integer("PRAGMA user_version", marks.version))
    return code;
  return readSchema(connection, marks.schema);
}

// From one moment of the database: another process may be making the schema.
int readMarksAtOnce(Connection &connection, Marks &marks) {
  if (int code = connection.execute("BEGIN"))
    return code;
  int code = readMarks(connection, marks);
  connection.execute("ROLLBACK");
  return code;
}

milliseconds untilThen(Clock::time_point end) {
  return std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(end - Clock::now()));
}

// For what sqlite does not wait for by itself, or not in the right way.
template <typename Attempt> int waitWhileBusy(Clock::time_point end, Attempt attempt) {
  milliseconds pause = kFirstPause;
  int code;
  while (((code = attempt()) & 0xff) == SQLITE_BUSY && Clock::now() < end) {
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
  return code;
}

int createWhatLacks(Connection &connection, Marks &marks) {
  int code = readMarks(connection, marks); // once more, with the lock in hand
  const auto create = [&](const char *tables) {
    if (code == SQLITE_OK)
      code = connection.execute(tables);
  };
  // The marks are part of the transaction, so a file is either without marks and empty or complete.
  if (code == SQLITE_OK && marks.lackTables()) {
    if (marks.isEmpty()) {
      create(kCreateKernels);
      create(kCreateChoiceIndex);
      create(("PRAGMA application_id = " + std::to_string(kApplicationId)).c_str());
    }
    if (marks.version < 2)
      create(kCreateLeases);
    create(kCreateUses);
    create(kCreateRoutes);
    create(("PRAGMA user_version = " + std::to_string(kSchemaVersion)).c_str());
  }
  if (code == SQLITE_OK)
    code = readMarks(connection, marks);
  if (code == SQLITE_OK)
    code = connection.execute("COMMIT");
  if (code != SQLITE_OK)
    connection.execute("ROLLBACK");
  return code;
}

// Of many who find a new or an older file at once, one makes what it lacks. The others look until it is there: in the
// queue for the lock they would wait for all that the first still does with it.
int completeSchema(Connection &connection, Marks &marks, Clock::time_point end) {
  bool mine = false;
  int code = waitWhileBusy(end, [&] {
    int result = readMarksAtOnce(connection, marks);
    if (result != SQLITE_OK || !marks.lackTables())
      return result;
    connection.setBusyTimeout(milliseconds(0));
    result = connection.execute("BEGIN IMMEDIATE");
    connection.setBusyTimeout(untilThen(end));
    mine = result == SQLITE_OK;
    return result;
  });
  return code == SQLITE_OK && mine ? createWhatLacks(connection, marks) : code;
}

// Changing the mode needs the file alone. A file that stays in another mode (a file system without shared memory, or
// one that others keep reading) works too, only slower.
void useWriteAheadLog(Connection &connection, Clock::time_point end) {
  end = std::min(end, Clock::now() + kModeTimeout);
  (void)waitWhileBusy(end, [&] {
    connection.setBusyTimeout(untilThen(end));
    return connection.execute("PRAGMA journal_mode = WAL");
  });
}

// A file that was in use on a local disk before. Alone with it, sqlite needs no shared memory to read its log.
int leaveWriteAheadLog(Connection &connection, Clock::time_point end) {
  std::array<std::byte, kHeaderBytes> header;
  size_t size = 0;
  if (int code = waitWhileBusy(end, [&] { return connection.readHead(header, size); }))
    return code;
  if (size < header.size() || header[kReadVersionOffset] != kLogReadVersion)
    return SQLITE_OK;
  int code = connection.execute("PRAGMA locking_mode = EXCLUSIVE");
  if (code == SQLITE_OK)
    code = waitWhileBusy(end, [&] { return connection.execute("PRAGMA journal_mode = DELETE"); });
  // The lock is given back by the next one who reads.
  connection.execute("PRAGMA locking_mode = NORMAL; SELECT count(*) FROM sqlite_schema");
  return code;
}

// The file may have been damaged.
constexpr const char *kCarefully = "PRAGMA cell_size_check = ON";

} // namespace

int64_t applicationOf(FileKind kind) { return kind == FileKind::kPack ? kPackApplicationId : kApplicationId; }

bool isLackOfLocks(int code) {
  switch (code) {
  case SQLITE_PROTOCOL:
  case SQLITE_IOERR_LOCK:
  case SQLITE_IOERR_RDLOCK:
  case SQLITE_IOERR_UNLOCK:
  case SQLITE_IOERR_CHECKRESERVEDLOCK:
  case SQLITE_IOERR_SHMLOCK:
    return true;
  default:
    return false;
  }
}

FileVerdict verdictOf(int code) {
  if (isLackOfLocks(code))
    return FileVerdict::kNoLocks;
  switch (code & 0xff) { // the primary code of an extended one
  case SQLITE_OK:
    return FileVerdict::kUsable;
  case SQLITE_CORRUPT:
  case SQLITE_NOTADB:
  case SQLITE_ERROR:     // "unsupported file format": the header does not hold
  case SQLITE_TOOBIG:    // of a schema, as the next: no schema of ours is as long
  case SQLITE_INTERRUPT: // takes as long to read
    return FileVerdict::kDamaged;
  case SQLITE_BUSY:
  case SQLITE_LOCKED:
    return FileVerdict::kLocked;
  default:
    return FileVerdict::kUnreachable;
  }
}

FileVerdict checkHeader(const Connection &connection, FileKind kind, Clock::time_point end, bool isUnfinished) {
  std::array<std::byte, kHeaderBytes> header{};
  size_t size = 0;
  if (int code = waitWhileBusy(end, [&] { return connection.readHead(header, size); }))
    return verdictOf(code);
  if (size == 0 && kind == FileKind::kDatabase)
    return FileVerdict::kUsable;
  if (size < kMagic.size() || std::memcmp(header.data(), kMagic.data(), kMagic.size()) != 0)
    return FileVerdict::kForeign;
  const auto numberAt = [&](size_t offset) {
    uint32_t number = 0;
    for (size_t i = 0; i < sizeof number; ++i)
      number = number << 8 | std::to_integer<uint32_t>(header[offset + i]);
    return number;
  };
  const uint32_t application = numberAt(kApplicationIdOffset);
  // Who made the file may have died in its first write, which the journal takes back.
  if (size < header.size()) {
    const bool mayBeOurs = size < kApplicationIdOffset + sizeof application || application == applicationOf(kind);
    return isUnfinished && mayBeOurs ? FileVerdict::kUsable : FileVerdict::kForeign;
  }
  // Who made the file may have died before it said whose it is: a database of one page holds nothing.
  const bool isEmpty = kind == FileKind::kDatabase && application == 0 && numberAt(kPageCountOffset) <= 1;
  if (application != applicationOf(kind) && !isEmpty)
    return FileVerdict::kForeign;
  // A pack is recognised whatever its schema.
  const bool isNewer =
      kind == FileKind::kDatabase && static_cast<int32_t>(numberAt(kUserVersionOffset)) > kSchemaVersion;
  return isNewer ? FileVerdict::kNewer : FileVerdict::kUsable;
}

FileVerdict adoptDatabase(Connection &connection, bool mayWrite, Journal journal, Clock::time_point end) {
  connection.setBusyTimeout(untilThen(end));
  mayWrite = mayWrite && !connection.isReadOnly();
  if (mayWrite && journal == Journal::kRollback)
    if (int code = leaveWriteAheadLog(connection, end))
      return verdictOf(code);
  Marks marks;
  if (int code = readMarksAtOnce(connection, marks))
    return verdictOf(code);
  const FileVerdict found = marks.verdict(FileKind::kDatabase);
  if (found == FileVerdict::kForeign || found == FileVerdict::kNewer)
    return found;

  if (marks.isEmpty() && !mayWrite)
    return FileVerdict::kEmpty;
  if (!marks.isEmpty() && !marks.areOurs())
    return FileVerdict::kDamaged;
  connection.liftGuard();
  // NORMAL survives a killed process; a power cut may lose the last rows but not the file.
  if (int code = connection.execute("PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON"))
    return verdictOf(code);
  if (int code = connection.execute(kCarefully))
    return verdictOf(code);
  // The schema comes before the log: while the mark is in the log alone, the header does not say whose file it is.
  if (mayWrite && marks.lackTables())
    if (int code = completeSchema(connection, marks, end))
      return verdictOf(code);
  if (mayWrite && journal == Journal::kWriteAheadLog)
    useWriteAheadLog(connection, end);
  connection.setBusyTimeout(kBusyTimeout);
  return marks.verdict(FileKind::kDatabase);
}

FileVerdict adoptPack(Connection &connection) {
  if (int code = connection.execute(kCarefully))
    return verdictOf(code);
  Marks marks;
  if (int code = readMarks(connection, marks))
    return verdictOf(code);
  const FileVerdict verdict = marks.verdict(FileKind::kPack);
  if (verdict != FileVerdict::kUsable)
    return verdict;
  connection.liftGuard();
  return verdictOf(connection.limitWorkBySize());
}

} // namespace nsa
