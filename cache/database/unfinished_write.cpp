#include "cache/database/unfinished_write.h"

#include "cache/database/directories.h"
#include "cache/database/sqlite.h"

#include <algorithm>
#include <sys/stat.h>
#include <unistd.h>

namespace nsa {

namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

// A writer that lives writes its journal more often.
constexpr std::chrono::seconds kAbandoned{60};

fs::path journalOf(const fs::path &path) { return path.string() + "-journal"; }

// A journal of the future, by another host's clock, is young.
bool isAbandoned(const fs::path &journal) {
  std::error_code error;
  const fs::file_time_type written = fs::last_write_time(journal, error);
  return !error && fs::file_time_type::clock::now() - written >= kAbandoned;
}

} // namespace

bool hasJournal(const fs::path &path) {
  struct stat status;
  return ::stat(journalOf(path).c_str(), &status) == 0;
}

FileVerdict takeBackUnfinished(const fs::path &path, Journal journal, std::chrono::steady_clock::time_point end) {
  if (!hasJournal(path))
    return FileVerdict::kUsable;
  if (!mayAccess(path, W_OK) || (journal == Journal::kRollback && !isAbandoned(journalOf(path))))
    return FileVerdict::kUnreachable;
  int code;
  sqlite::Connection connection = sqlite::Connection::open(path.string(), SQLITE_OPEN_READWRITE, code);
  if (!connection)
    return verdictOf(code);
  // Before anything that rolls back: a file of somebody else stays as it is.
  if (const FileVerdict verdict = checkHeader(connection, FileKind::kDatabase, end, true);
      verdict != FileVerdict::kUsable)
    return verdict;
  const auto left = std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
  connection.setBusyTimeout(std::max(left, milliseconds(0)));
  int64_t tables;
  return verdictOf(connection.integer("SELECT count(*) FROM sqlite_schema", tables));
}

} // namespace nsa
