// The small part of sqlite that the store needs, as RAII: a connection with cached statements, and a query that resets
// its statement when it goes out of scope. Functions return sqlite's own result codes, and none of them throws.
// The schema in a database file is SQL that the writer of the file chose. A new connection has guard limits: sqlite may
// read the file's schema, but no SQL of the schema can run for long. `liftGuard` removes the guard limits once the
// schema is known (cache/database/known_schema.h).
// Thread-safety: a connection is not thread-safe. The store's mutex guards a connection and its queries.
#pragma once

#include "runtime/process/file_limit_signal.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sqlite3.h>

namespace nsa::sqlite {

class Connection {
public:
  Connection() = default;
  Connection(Connection &&other) noexcept;
  Connection &operator=(Connection &&other) noexcept;
  ~Connection() { close(); }

  // Opens a database. If a file cannot be opened, the connection is empty and `result` has sqlite's code. `flags` are
  // those of sqlite3_open_v2.
  static Connection open(const std::string &name, int flags, int &result);
  // Opens a file that no process writes while the connection is open. An immutable connection takes no lock, and
  // creates no journal or log in the folder of the file.
  static Connection openImmutable(const std::string &path, int &result);
  explicit operator bool() const { return handle != nullptr; }
  void close();
  // Forgets the connection without touching its file. The child of a fork calls `abandon`, because `close` would write
  // the log into the parent's file and delete the log.
  void abandon();

  // `liftGuard` may be called only if the schema is known, or if the caller is about to make it. After `liftGuard` only
  // the limits of the sqlite library itself apply.
  void liftGuard();
  // Limits the work of every statement to an amount that follows from the file's size. A statement ends with
  // SQLITE_INTERRUPT if it takes more steps, or reads more bytes of values, than a correct file of this size can need.
  // In a forged file, pages that refer to each other may give more rows than the file has space for, and rows that use
  // the same pages may give longer values. `limitWorkBySize` is meant for a connection that only reads.
  int limitWorkBySize();
  // Returns the bytes that a statement may read. Without a set limit a statement may read any number of bytes.
  int64_t mostBytes() const { return work ? work->bytes : std::numeric_limits<int64_t>::max(); }

  void setBusyTimeout(std::chrono::milliseconds timeout);
  // After `leaveFileAlone`, `close` leaves the write-ahead log on disk and does not copy the log into the database
  // file.
  void leaveFileAlone();

  int execute(const char *sql);
  // Runs a pragma or query that gives one integer.
  int integer(const char *sql, int64_t &value);
  bool isReadOnly() const;
  // Returns whether the path of the open file now names another file, or no file.
  bool hasMoved() const;
  // Reads the first bytes of the file, or fewer when it is shorter. If another process is writing the file, `readHead`
  // returns SQLITE_BUSY. `readHead` reads no log, changes nothing, and takes no lock on an immutable file. The bytes
  // are read through sqlite's own descriptor, because closing another descriptor would drop all locks of the process.
  int readHead(std::span<std::byte> head, size_t &size) const;
  // Makes `target` a copy of this database, whatever `target` contained.
  int copyTo(Connection &target) const;
  int64_t changes() const;
  std::string message() const;

private:
  friend class Query;
  friend class ShortValues;
  friend class WriteLimit;
  // How many steps of sqlite's virtual machine the running statement may take, and how many bytes of values may be read
  // from it. The bytes of values are counted separately from steps, because reading a text of any length is one step.
  struct Work {
    int64_t limit = 0, left = 0;
    int64_t bytes = 0;
  };
  static Connection open(const std::string &name, int flags, bool isImmutable, int &result);
  void guard();
  void limitWork(int64_t steps, int64_t bytes);
  // The bytes of the file and its write-ahead log on the disk. nullopt where the file system does not tell.
  std::optional<int64_t> allocatedBytes() const;
  // `sql` must be a string constant, because its address is the key in the cache of prepared statements.
  sqlite3_stmt *prepared(const char *sql, int &result);

  sqlite3 *handle = nullptr;
  bool isImmutable = false;
  std::unique_ptr<Work> work; // sqlite keeps its address; null: no limit
  std::vector<std::pair<const char *, sqlite3_stmt *>> statements;
};

// While a ShortValues exists, reading a text or blob that is longer than any value except a kernel's binary gives
// SQLITE_TOOBIG. A value that is too long is refused by its length, before its bytes are read.
class ShortValues {
public:
  explicit ShortValues(Connection &connection);
  ~ShortValues();
  ShortValues(const ShortValues &) = delete;
  ShortValues &operator=(const ShortValues &) = delete;

private:
  sqlite3 *handle;
  int before;
};

// While a WriteLimit exists, a write beyond the process's limit of file sizes gives an error of sqlite instead of the
// signal SIGXFSZ. A query has a WriteLimit for its whole life, because reading may write too: the index of a log, or
// the pages that a journal restores. An immutable file is never written, so a WriteLimit makes no system call for an
// immutable file.
class WriteLimit {
public:
  explicit WriteLimit(const Connection &connection);

private:
  std::optional<FileLimitSignalHeld> held;
};

class Query {
public:
  // Binds the values to the parameters of the statement, in their order: texts, bytes, int64_t and double. Texts and
  // bytes are borrowed until the query ends. NaN and infinity are no measurements and are stored as 0: sqlite would
  // store a NaN as NULL.
  template <typename... Values>
  Query(Connection &connection, const char *sql, const Values &...values)
      : limit(connection), bytesLeft(connection.mostBytes()) {
    prepare(connection, sql);
    int parameter = 0;
    (bind(++parameter, values), ...);
  }
  ~Query();
  Query(const Query &) = delete;
  Query &operator=(const Query &) = delete;

  // `step` returns true while there is a row. After the last row, `code()` says whether the query ended without an
  // error.
  bool step();
  // Runs a statement that gives no rows.
  int run();
  // The results SQLITE_DONE and SQLITE_ROW are returned as SQLITE_OK.
  int code() const { return result == SQLITE_OK && bytesLeft < 0 ? SQLITE_INTERRUPT : result; }

  // Columns count from 0. Texts and blobs of a row are valid until the next step of the query. If a value has more
  // bytes than the statement may still read, an empty value is returned, and the query gives no further row.
  int type(int column) const; // must be called before the others, which convert the value
  std::string text(int column) const;
  std::span<const std::byte> bytes(int column) const;
  int64_t integer(int column) const;
  double real(int column) const;

private:
  void prepare(Connection &connection, const char *sql);
  void bind(int parameter, std::string_view text);
  void bind(int parameter, std::span<const std::byte> bytes);
  void bind(int parameter, int64_t value);
  void bind(int parameter, double value);
  void keep(int code);
  // Counts a value's bytes once, and returns whether the statement may read it.
  bool charge(int column) const;
  WriteLimit limit;
  sqlite3_stmt *statement = nullptr;
  int result = SQLITE_OK;
  mutable int64_t bytesLeft;
  mutable uint64_t charged = 0; // a bit for each column of the row that was counted
};

} // namespace nsa::sqlite
