#include "cache/database/sqlite.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sys/stat.h>

namespace nsa::sqlite {

namespace {

// The longest statement of a schema of ours has 600 bytes, and no value of a sample of sqlite's statistics is as long.
constexpr int kGuardedStatementBytes = 8192, kGuardedValueBytes = 64 << 10;
// Reading a schema takes a dozen steps for each of its ten objects.
constexpr int64_t kGuardedSteps = 20000;
constexpr int kStepsBetweenLooks = 1000;
// A row has at least a few bytes; an integrity check takes the most steps for each.
constexpr int64_t kLeastSteps = 1000000, kStepsPerByte = 8;
constexpr int64_t kLeastBytes = 64 << 10; // what a pragma says is not in the file
// A row takes at least these beside its values, each of which has a type of at least one byte.
constexpr int64_t kBytesPerRow = 4, kBytesPerValue = 1;
// The length of a sparse file says nothing. A file system may compress, and say late what it has written.
constexpr int64_t kLeastAllocated = 4 << 20, kMostCompression = 4, kBlockBytes = 512;
constexpr int kShortBytes = 4 << 20;

// "file:" URI with everything that has a meaning in one escaped.
std::string immutableUri(const std::string &path) {
  std::string uri = "file:";
  for (char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      static constexpr char kDigits[] = "0123456789abcdef";
      uri += '%';
      uri += kDigits[static_cast<unsigned char>(c) >> 4];
      uri += kDigits[static_cast<unsigned char>(c) & 15];
    } else {
      uri += c;
    }
  }
  return uri + "?immutable=1";
}

} // namespace

Connection::Connection(Connection &&other) noexcept
    : handle(std::exchange(other.handle, nullptr)), isImmutable(other.isImmutable), work(std::move(other.work)),
      statements(std::exchange(other.statements, {})) {}

Connection &Connection::operator=(Connection &&other) noexcept {
  if (this != &other) {
    close();
    handle = std::exchange(other.handle, nullptr);
    isImmutable = other.isImmutable;
    work = std::move(other.work);
    statements = std::exchange(other.statements, {});
  }
  return *this;
}

Connection Connection::open(const std::string &name, int flags, int &result) {
  return open(name, flags, false, result);
}

Connection Connection::open(const std::string &name, int flags, bool isImmutable, int &result) {
  Connection connection;
  connection.isImmutable = isImmutable;
  const WriteLimit held(connection);
  result =
      sqlite3_open_v2(name.c_str(), &connection.handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  if (result != SQLITE_OK)
    connection.close(); // sqlite hands out a handle on failure too
  else
    connection.guard();
  return connection;
}

Connection Connection::openImmutable(const std::string &path, int &result) {
  return open(immutableUri(path), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, true, result);
}

void Connection::close() {
  if (!handle)
    return;
  const WriteLimit held(*this);
  for (auto &[sql, statement] : statements)
    sqlite3_finalize(statement);
  statements.clear();
  sqlite3_close(handle);
  handle = nullptr;
}

void Connection::abandon() {
  statements.clear();
  handle = nullptr;
}

void Connection::guard() {
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  // These stay: neither a view nor a trigger is part of a schema of ours, and no function of one has an effect.
  for (const int option : {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_VIEW, SQLITE_DBCONFIG_ENABLE_TRIGGER})
    sqlite3_db_config(handle, option, 0, nullptr);
  // To load a schema sqlite reads the table sqlite_stat1 where there is one, and with it the columns that are
  // generated. One call of a function may take hours and cannot be interrupted: none has an argument here, so that
  // the statement that calls it is an error.
  sqlite3_limit(handle, SQLITE_LIMIT_FUNCTION_ARG, 0);
  sqlite3_limit(handle, SQLITE_LIMIT_SQL_LENGTH, kGuardedStatementBytes);
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, kGuardedValueBytes);
  limitWork(kGuardedSteps, std::numeric_limits<int64_t>::max());
}

void Connection::liftGuard() {
  constexpr int kMost = std::numeric_limits<int>::max(); // sqlite takes its own upper bound instead
  for (const int limit : {SQLITE_LIMIT_FUNCTION_ARG, SQLITE_LIMIT_SQL_LENGTH, SQLITE_LIMIT_LENGTH})
    sqlite3_limit(handle, limit, kMost);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 0, nullptr);
  sqlite3_progress_handler(handle, 0, nullptr, nullptr);
  work.reset();
}

void Connection::limitWork(int64_t steps, int64_t bytes) {
  work = std::make_unique<Work>(Work{steps, steps, bytes});
  const auto look = [](void *user) -> int {
    auto *left = static_cast<Work *>(user);
    left->left -= kStepsBetweenLooks;
    return left->left < 0;
  };
  sqlite3_progress_handler(handle, kStepsBetweenLooks, look, work.get());
}

int Connection::limitWorkBySize() {
  int64_t pages = 0, pageBytes = 0;
  if (const int code = integer("PRAGMA page_count", pages))
    return code;
  if (const int code = integer("PRAGMA page_size", pageBytes))
    return code;
  int64_t bytes = pages * pageBytes;
  if (const std::optional<int64_t> allocated = allocatedBytes())
    bytes = std::min(bytes, kLeastAllocated + kMostCompression * *allocated);
  bytes = std::max(bytes, kLeastBytes);
  // No value is longer than all together; sqlite reads a value before its length is charged.
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, static_cast<int>(std::min<int64_t>(bytes, INT32_MAX)));
  limitWork(kLeastSteps + kStepsPerByte * bytes, bytes);
  return SQLITE_OK;
}

std::optional<int64_t> Connection::allocatedBytes() const {
  const char *name = sqlite3_db_filename(handle, "main");
  struct stat status{};
  if (!name || *name == '\0' || ::stat(name, &status) != 0 || status.st_blocks == 0)
    return std::nullopt;
  int64_t blocks = status.st_blocks;
  if (!isImmutable && ::stat(sqlite3_filename_wal(name), &status) == 0)
    blocks += status.st_blocks;
  return blocks * kBlockBytes;
}

void Connection::setBusyTimeout(std::chrono::milliseconds timeout) {
  sqlite3_busy_timeout(handle, static_cast<int>(timeout.count()));
}

void Connection::leaveFileAlone() { sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr); }

int Connection::execute(const char *sql) {
  if (work)
    work->left = work->limit;
  const WriteLimit held(*this);
  return sqlite3_exec(handle, sql, nullptr, nullptr, nullptr);
}

int Connection::integer(const char *sql, int64_t &value) {
  Query query(*this, sql);
  if (query.step())
    value = query.integer(0);
  return query.code();
}

bool Connection::isReadOnly() const { return sqlite3_db_readonly(handle, "main") == 1; }

bool Connection::hasMoved() const {
  int moved = 0;
  return sqlite3_file_control(handle, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved != 0;
}

int Connection::readHead(std::span<std::byte> head, size_t &size) const {
  sqlite3_file *file = nullptr;
  sqlite3_int64 bytes = 0;
  int code = sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, static_cast<void *>(&file));
  if (code == SQLITE_OK && !file->pMethods) { // in memory
    size = 0;
    return SQLITE_OK;
  }
  if (code == SQLITE_OK && !isImmutable)
    code = file->pMethods->xLock(file, SQLITE_LOCK_SHARED);
  if (code != SQLITE_OK)
    return code;
  code = file->pMethods->xFileSize(file, &bytes);
  size = std::min(head.size(), static_cast<size_t>(bytes));
  if (code == SQLITE_OK && size != 0)
    code = file->pMethods->xRead(file, head.data(), static_cast<int>(size), 0);
  if (!isImmutable)
    file->pMethods->xUnlock(file, SQLITE_LOCK_NONE);
  return code;
}

int Connection::copyTo(Connection &target) const {
  const WriteLimit held(target), heldHere(*this); // to read a database may be to write its log's index
  constexpr int kAllPages = -1;
  sqlite3_backup *backup = sqlite3_backup_init(target.handle, "main", handle, "main");
  if (!backup)
    return sqlite3_errcode(target.handle);
  sqlite3_backup_step(backup, kAllPages);
  return sqlite3_backup_finish(backup); // the step's error, if there was one
}

int64_t Connection::changes() const { return sqlite3_changes64(handle); }

std::string Connection::message() const { return handle ? sqlite3_errmsg(handle) : "no connection"; }

sqlite3_stmt *Connection::prepared(const char *sql, int &result) {
  result = SQLITE_OK;
  for (auto &[known, statement] : statements)
    if (known == sql)
      return statement;
  sqlite3_stmt *statement = nullptr;
  result = sqlite3_prepare_v3(handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (result == SQLITE_OK)
    statements.emplace_back(sql, statement);
  return statement;
}

ShortValues::ShortValues(Connection &connection)
    : handle(connection.handle), before(sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, kShortBytes)) {}

ShortValues::~ShortValues() { sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, before); }

WriteLimit::WriteLimit(const Connection &connection) {
  if (!connection.isImmutable)
    held.emplace();
}

void Query::prepare(Connection &connection, const char *sql) {
  if (connection.work)
    connection.work->left = connection.work->limit;
  statement = connection.prepared(sql, result);
}

Query::~Query() {
  if (!statement)
    return;
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
}

void Query::keep(int code) {
  if (result == SQLITE_OK)
    result = code;
}

void Query::bind(int parameter, std::string_view text) {
  if (statement)
    keep(sqlite3_bind_text64(statement, parameter, text.empty() ? "" : text.data(), text.size(), SQLITE_STATIC,
                             SQLITE_UTF8));
}

void Query::bind(int parameter, std::span<const std::byte> bytes) {
  // A null pointer would bind NULL instead of an empty blob.
  if (statement)
    keep(bytes.empty() ? sqlite3_bind_zeroblob(statement, parameter, 0)
                       : sqlite3_bind_blob64(statement, parameter, bytes.data(), bytes.size(), SQLITE_STATIC));
}

void Query::bind(int parameter, int64_t value) {
  if (statement)
    keep(sqlite3_bind_int64(statement, parameter, value));
}

void Query::bind(int parameter, double value) {
  if (statement)
    keep(sqlite3_bind_double(statement, parameter, std::isfinite(value) ? value : 0));
}

bool Query::step() {
  if (code() != SQLITE_OK)
    return false;
  int code = sqlite3_step(statement);
  if (code == SQLITE_ROW) {
    charged = 0;
    bytesLeft -= kBytesPerRow;
    return true;
  }
  if (code != SQLITE_DONE)
    result = code;
  return false;
}

int Query::run() {
  while (step()) {
  }
  return result;
}

bool Query::charge(int column) const {
  const uint64_t bit = uint64_t{1} << column;
  if (!(charged & bit))
    bytesLeft -= kBytesPerValue + sqlite3_column_bytes(statement, column);
  charged |= bit;
  return bytesLeft >= 0;
}

int Query::type(int column) const { return sqlite3_column_type(statement, column); }

std::string Query::text(int column) const {
  auto *data = reinterpret_cast<const char *>(sqlite3_column_text(statement, column));
  return data && charge(column) ? std::string(data, static_cast<size_t>(sqlite3_column_bytes(statement, column)))
                                : std::string();
}

std::span<const std::byte> Query::bytes(int column) const {
  auto *data = static_cast<const std::byte *>(sqlite3_column_blob(statement, column));
  return {data, data && charge(column) ? static_cast<size_t>(sqlite3_column_bytes(statement, column)) : 0};
}

int64_t Query::integer(int column) const { return sqlite3_column_int64(statement, column); }
double Query::real(int column) const { return sqlite3_column_double(statement, column); }

} // namespace nsa::sqlite
