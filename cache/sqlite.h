// The little of sqlite that the store needs, as RAII: a connection with cached statements, and a query
// that resets its statement when it goes out of scope. Results are sqlite's own codes; nothing throws.
// A file's schema is SQL of the file's writer. A connection opens guarded: sqlite may read the schema, and nothing
// that stands in it can run for long. The guard is lifted once the schema is known (cache/known_schema.h).
// Thread-safety: none; the store's mutex guards a connection and its queries.
#pragma once

#include "runtime/base/file_limit_signal.h"

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

  // An empty connection and the code in `result` on failure. `flags` as for sqlite3_open_v2.
  static Connection open(const std::string &name, int flags, int &result);
  // For a file in which nothing changes: takes no lock and makes no file beside it.
  static Connection openImmutable(const std::string &path, int &result);
  explicit operator bool() const { return handle != nullptr; }
  void close();
  // Forgets the connection without touching its file, for the child of a fork: closing there would
  // checkpoint and unlink under the parent's feet.
  void abandon();

  // For a schema that is known, or that the caller is about to make. The limits of sqlite's library hold from here on.
  void liftGuard();
  // A statement that takes more steps, or whose values have more bytes, than the file's size explains ends with
  // SQLITE_INTERRUPT: pages that name each other may hold more rows than fit into a file, and rows that share pages
  // longer ones. For a connection that only reads.
  int limitWorkBySize();
  // The bytes that such a statement may read; no limit where none was set.
  int64_t mostBytes() const { return work ? work->bytes : std::numeric_limits<int64_t>::max(); }

  void setBusyTimeout(std::chrono::milliseconds timeout);
  // Closing will not move the write-ahead log into the file.
  void leaveFileAlone();

  int execute(const char *sql);
  // The one integer that a pragma or query gives.
  int integer(const char *sql, int64_t &value);
  bool isReadOnly() const;
  // Whether another file, or none, has taken the name of the one that is open.
  bool hasMoved() const;
  // The first bytes of the file, fewer when it is shorter; SQLITE_BUSY while somebody writes it. Looks at no log and
  // changes nothing, and locks nothing where nothing changes. Through sqlite's own descriptor: closing another one
  // would drop the locks of the whole process.
  int readHead(std::span<std::byte> head, size_t &size) const;
  // Makes `target` a copy of this database, whatever it held.
  int copyTo(Connection &target) const;
  int64_t changes() const;
  // The last error as text.
  std::string message() const;

private:
  friend class Query;
  friend class ShortValues;
  friend class WriteLimit;
  // How many steps of sqlite's virtual machine the running statement may take, and the bytes of the values that are
  // read of it: a text of any length is one step.
  struct Work {
    int64_t limit = 0, left = 0;
    int64_t bytes = 0;
  };
  static Connection open(const std::string &name, int flags, bool isImmutable, int &result);
  void guard();
  void limitWork(int64_t steps, int64_t bytes);
  // Of the file and its write-ahead log on the disk; nothing where the file system does not say.
  std::optional<int64_t> allocatedBytes() const;
  // `sql` is a constant: its address is the key of the cache.
  sqlite3_stmt *prepared(const char *sql, int &result);

  sqlite3 *handle = nullptr;
  bool isImmutable = false;
  std::unique_ptr<Work> work; // sqlite keeps its address; null: no limit
  std::vector<std::pair<const char *, sqlite3_stmt *>> statements;
};

// While it lives, a text or blob that is read and is longer than any but a kernel's binary is SQLITE_TOOBIG: it is
// refused by its length, before its bytes are read.
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

// While it lives, a write beyond the limit of file sizes is an error of sqlite's. A query has one for its whole life,
// as a reader writes too: the index of a log, or what a journal takes back. An immutable file is written by none, so
// there it costs nothing.
class WriteLimit {
public:
  explicit WriteLimit(const Connection &connection);

private:
  std::optional<FileLimitSignalHeld> held;
};

class Query {
public:
  Query(Connection &connection, const char *sql);
  ~Query();
  Query(const Query &) = delete;
  Query &operator=(const Query &) = delete;

  // Parameters count from 1. The bytes are borrowed until the query ends.
  Query &bind(int parameter, std::string_view text);
  Query &bind(int parameter, std::span<const std::byte> bytes);
  Query &bind(int parameter, int64_t value);
  Query &bind(int parameter, double value);

  // True while there is a row; afterwards `code()` says whether it ended well.
  bool step();
  // Runs a statement that gives no rows.
  int run();
  // SQLITE_DONE and SQLITE_ROW count as SQLITE_OK.
  int code() const { return result == SQLITE_OK && bytesLeft < 0 ? SQLITE_INTERRUPT : result; }

  // Columns count from 0; valid until the next step. Values beyond what the statement may read are empty, and no row
  // follows.
  int type(int column) const; // before the others, which convert
  std::string text(int column) const;
  std::span<const std::byte> bytes(int column) const;
  int64_t integer(int column) const;
  double real(int column) const;

private:
  void keep(int code);
  // Whether the statement may read this value too. Each value of a row counts once.
  bool charge(int column) const;
  WriteLimit limit;
  sqlite3_stmt *statement = nullptr;
  int result = SQLITE_OK;
  mutable int64_t bytesLeft;
  mutable uint64_t charged = 0; // a bit for each column of the row
};

} // namespace nsa::sqlite
