#include "cache/rows/collection.h"

#include "runtime/base/problem.h"

#include <algorithm>

namespace nsa {

namespace {

using sqlite::Connection;
using sqlite::Query;

struct Candidate {
  KernelSummary kernel;
  int64_t day = 0;
  bool isNamed = false, isTuned = false;
};

constexpr const char *kCandidates =
    "SELECT k.content, k.template, k.operator, k.target, k.config, length(k.binary), k.binary_bytes,"
    " coalesce(u.day, 0),"
    " EXISTS (SELECT 1 FROM choices AS c WHERE c.content = k.content),"
    " EXISTS (SELECT 1 FROM choices AS c WHERE c.content = k.content AND c.tuned = 1)"
    " FROM kernels AS k LEFT JOIN uses AS u USING (content)";
constexpr const char *kDeleteChoices = "DELETE FROM choices WHERE content = ?1"; // their evidence goes with them
constexpr const char *kDeleteUse = "DELETE FROM uses WHERE content = ?1";
constexpr const char *kDeleteKernel = "DELETE FROM kernels WHERE content = ?1";
// A clock that was ahead must not keep a kernel for ever, nor a day that no clock shows.
constexpr const char *kEndFutureUses = "UPDATE uses SET day = ?1 WHERE day > ?1";
constexpr const char *kDeleteStrayUses = "DELETE FROM uses WHERE content NOT IN (SELECT content FROM kernels)";

// In the order in which they would go.
int listCandidates(Connection &connection, int64_t day, std::vector<Candidate> &candidates) {
  Query query(connection, kCandidates);
  while (query.step())
    candidates.push_back({{query.text(0), query.text(1), query.text(2), query.text(3), query.text(4), query.integer(5),
                           query.integer(6)},
                          std::clamp(query.integer(7), int64_t{0}, day),
                          query.integer(8) == 1,
                          query.integer(8) == 1 && (query.integer(9) == 1 || !isTuned(query.text(2)))});
  std::sort(candidates.begin(), candidates.end(), [](const Candidate &a, const Candidate &b) {
    if (a.isNamed != b.isNamed)
      return b.isNamed;
    return a.day != b.day ? a.day < b.day : a.kernel.content < b.kernel.content;
  });
  return query.code();
}

int removeKernel(Connection &connection, const std::string &content, int64_t &choices) {
  int code = Query(connection, kDeleteChoices, content).run();
  if (code != SQLITE_OK)
    return code;
  choices += connection.changes();
  for (const char *sql : {kDeleteUse, kDeleteKernel})
    if ((code = Query(connection, sql, content).run()))
      return code;
  return SQLITE_OK;
}

} // namespace

int usedBytes(Connection &connection, int64_t &bytes) {
  int64_t pages = 0, free = 0, size = 0;
  if (const int code = connection.integer("PRAGMA page_count", pages))
    return code;
  if (const int code = connection.integer("PRAGMA freelist_count", free))
    return code;
  const int code = connection.integer("PRAGMA page_size", size);
  bytes = (pages - free) * size;
  return code;
}

int collect(Connection &connection, const CollectionRules &rules, int64_t day, CollectionReport &report) {
  if (const int code = usedBytes(connection, report.bytesBefore))
    return code;
  report.bytesAfter = report.bytesBefore;
  if (const int code = Query(connection, kEndFutureUses, day).run())
    return code;
  std::vector<Candidate> candidates;
  if (const int code = listCandidates(connection, day, candidates))
    return code;
  const auto whyNow = [&](const Candidate &candidate) -> std::string {
    if (!candidate.isNamed && rules.unnamed)
      return "no choice names it";
    if (candidate.isTuned && !rules.tuned)
      return "";
    if (rules.maxIdleDays && day - candidate.day > *rules.maxIdleDays)
      return candidate.day == 0 ? "no use is known" : "last used " + std::to_string(day - candidate.day) + " days ago";
    return rules.maxBytes > 0 && report.bytesAfter > rules.maxBytes ? "least recently used" : "";
  };
  for (Candidate &candidate : candidates) {
    std::string reason = candidate.kernel.content == rules.keep ? "" : whyNow(candidate);
    if (reason.empty())
      continue;
    if (const int code = removeKernel(connection, candidate.kernel.content, report.choices))
      return code;
    if (const int code = usedBytes(connection, report.bytesAfter))
      return code;
    report.removed.push_back({std::move(candidate.kernel), candidate.day, std::move(reason)});
  }
  return Query(connection, kDeleteStrayUses).run();
}

} // namespace nsa
