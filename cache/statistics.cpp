#include "cache/statistics.h"

#include "cache/rows/collection.h"

#include <filesystem>

namespace nsa {

namespace {

using sqlite::Query;

class Counter {
public:
  explicit Counter(CacheFile &file) : file(file) {}

  // The integers of one row, into the places given.
  void row(const char *sql, std::initializer_list<int64_t *> places) {
    Query query(file.connection(), sql);
    int column = 0;
    if (query.step())
      for (int64_t *place : places)
        *place = query.integer(column++);
    keep(query.code());
  }
  void groups(const char *sql, std::map<std::string, int64_t> &counts) {
    Query query(file.connection(), sql);
    while (query.step())
      counts[query.text(0)] = query.integer(1);
    keep(query.code());
  }
  void keep(int next) { code = code == SQLITE_OK ? next : code; }
  Status status() const { return code == SQLITE_OK ? Status::ok() : file.failed(code); }

private:
  CacheFile &file;
  int code = SQLITE_OK;
};

} // namespace

Result<CacheStatistics> summarizeCache(CacheFile &file) {
  CacheStatistics result;
  Counter count(file);
  int64_t pages = 0, pageBytes = 0, version = 0;
  count.row("PRAGMA page_count", {&pages});
  count.row("PRAGMA page_size", {&pageBytes});
  count.row("PRAGMA user_version", {&version});
  result.fileBytes = pages * pageBytes;
  count.keep(usedBytes(file.connection(), result.usedBytes));
  if (file.isEmpty()) { // the pages belong to the store in memory that replaces it
    std::error_code error;
    const uintmax_t bytes = std::filesystem::file_size(file.path(), error);
    result.fileBytes = error ? 0 : static_cast<int64_t>(bytes);
    result.usedBytes = 0;
  }
  count.row("SELECT count(*), coalesce(sum(length(binary)), 0), coalesce(sum(binary_bytes), 0),"
            " count(CASE WHEN content NOT IN (SELECT content FROM choices) THEN 1 END) FROM kernels",
            {&result.kernels, &result.compressedBytes, &result.binaryBytes, &result.unnamedKernels});
  count.row(
      "SELECT count(*), coalesce(sum(tuned), 0), count(CASE WHEN tuned AND provenance LIKE '% remade=%' THEN 1 END)"
      " FROM choices",
      {&result.choices, &result.tunedChoices, &result.remadeChoices});
  count.row("SELECT count(*) FROM evidence", {&result.measurements});
  count.groups("SELECT device, count(*) FROM choices GROUP BY device", result.choicesByDevice);
  count.groups("SELECT substr(problem, 1, instr(problem || ' ', ' ') - 1) AS op, count(*) FROM choices GROUP BY op",
               result.choicesByOperator);
  count.groups("SELECT target, count(*) FROM kernels GROUP BY target", result.kernelsByTarget);
  if (version >= kSchemaWithRoutes)
    count.row("SELECT count(*) FROM routes", {&result.routes});
  if (version >= kSchemaWithRoutes && !file.isPack()) {
    int64_t uses = 0, first = 0, last = 0;
    count.row("SELECT count(*), coalesce(min(day), 0), coalesce(max(day), 0) FROM uses", {&uses, &first, &last});
    if (uses != 0) {
      result.firstUse = first;
      result.lastUse = last;
    }
  }
  NSA_RETURN_IF_ERROR(count.status());
  return result;
}

} // namespace nsa
