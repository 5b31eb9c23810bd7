// Packs and databases for the fuzzers: valid ones made by our own writers, and changes to one through sqlite, after
// which its digests and its signature may be made anew, so that what is behind them is reached.
// Thread-safety: one thread.
#pragma once

#include "cache/database/signing_key.h"
#include "cache/database/sqlite.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>

namespace nsa::fuzz {

// The key that signs; everyone knows it.
SecretKey signingKey();

// Three kernels, with choices, evidence, routes and a signature. The same bytes each time.
const std::string &validPack();
const std::string &validDatabase();
bool isDatabase(std::string_view file);

// A file of this content, open for changes.
class FileEdit {
public:
  explicit FileEdit(std::string_view content);

  // False when sqlite cannot even open it; the rest is then not to be called.
  bool isOpen() const { return static_cast<bool>(connection); }
  // Errors are passed over: what could not be changed stays.
  void execute(const std::string &sql) { connection.execute(sql.c_str()); }
  // A statement with one parameter. `sql` is kept as long as the connection.
  void execute(const std::string &sql, std::string_view text);
  void execute(const std::string &sql, std::span<const std::byte> bytes);
  void execute(const std::string &sql, int64_t number);
  std::string bytes(const std::string &sql);
  int64_t integer(const std::string &sql);

  // The digest of every kernel's row, the pack's two digests, its signature.
  void resealKernels();
  void resealPack();
  void sign();

  // The content after the changes.
  std::string finish();

private:
  const char *keep(const std::string &sql) { return statements.emplace_back(sql).c_str(); }

  std::string path;
  std::deque<std::string> statements; // longer than the connection, which knows them by their addresses
  sqlite::Connection connection;
};

// What a checked-in file of changes stands for: SQL, with lines "-- database" (instead of the pack), "-- small pages",
// "-- reseal kernels", "-- reseal" and "-- sign" for the functions above. The last three act after the SQL.
std::string expandEdits(const std::string &text);

} // namespace nsa::fuzz
