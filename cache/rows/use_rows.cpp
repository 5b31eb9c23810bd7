#include "cache/rows/use_rows.h"

#include <chrono>

namespace nsa {

namespace {

using sqlite::Connection;
using sqlite::Query;

// Unequal rather than later: a clock that was ahead must not keep a kernel for ever.
constexpr const char *kIsKnown = "SELECT 1 FROM uses WHERE content = ?1 AND day = ?2";
constexpr const char *kPutUse = "INSERT INTO uses (content, day)"
                                " SELECT ?1, ?2 WHERE EXISTS (SELECT 1 FROM kernels WHERE content = ?1)"
                                " ON CONFLICT (content) DO UPDATE SET day = excluded.day WHERE day <> excluded.day";

} // namespace

int64_t today() {
  using namespace std::chrono;
  return duration_cast<days>(system_clock::now().time_since_epoch()).count();
}

int UseLog::leaveOutKnown(Connection &connection, int64_t day) {
  for (auto content = contents.begin(); content != contents.end();) {
    Query query(connection, kIsKnown, *content, day);
    const bool known = query.step();
    if (query.code() != SQLITE_OK)
      return query.code();
    content = known ? contents.erase(content) : std::next(content);
  }
  return SQLITE_OK;
}

int UseLog::write(Connection &connection, int64_t day) const {
  for (const std::string &content : contents)
    if (const int code = Query(connection, kPutUse, content, day).run())
      return code;
  return SQLITE_OK;
}

} // namespace nsa
