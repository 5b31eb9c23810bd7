#include "cache/difference.h"

#include <map>

namespace nsa {

namespace {

using sqlite::Query;
using Rows = std::map<std::string, std::string>; // what counts, by name

Status readDigests(CacheFile &file, Rows &rows) {
  Query query(file.connection(), "SELECT content, digest FROM kernels");
  while (query.step()) {
    const std::span<const std::byte> digest = query.bytes(1);
    rows[query.text(0)] = toHex(digest);
  }
  return query.code() == SQLITE_OK ? Status::ok() : file.failed(query.code());
}

Status readAll(CacheFile &file, Rows &kernels, Rows &choices, Rows &routes) {
  NSA_RETURN_IF_ERROR(readDigests(file, kernels));
  NSA_ASSIGN_OR_RETURN(std::vector<StoredChoice> choiceList, file.choices());
  for (const StoredChoice &choice : choiceList)
    choices[choice.problem + " on " + choice.device] = choice.content + (choice.tuned ? " tuned" : "");
  NSA_ASSIGN_OR_RETURN(std::vector<StoredRoute> routeList, file.routes());
  for (const StoredRoute &route : routeList)
    routes[route.family + " on " + route.device + " " + route.name] = std::to_string(route.threshold);
  return Status::ok();
}

RowDifference compare(const Rows &first, const Rows &second) {
  RowDifference result;
  for (const auto &[name, value] : first) {
    const auto other = second.find(name);
    if (other == second.end())
      result.onlyFirst.push_back(name);
    else if (other->second != value)
      result.changed.push_back(name);
    else
      ++result.same;
  }
  for (const auto &[name, value] : second)
    if (!first.contains(name))
      result.onlySecond.push_back(name);
  return result;
}

} // namespace

bool CacheDifference::isNone() const {
  for (const RowDifference *rows : {&kernels, &choices, &routes})
    if (!rows->onlyFirst.empty() || !rows->onlySecond.empty() || !rows->changed.empty())
      return false;
  return true;
}

Result<CacheDifference> compareCaches(CacheFile &first, CacheFile &second) {
  Rows kernels[2], choices[2], routes[2];
  NSA_RETURN_IF_ERROR(readAll(first, kernels[0], choices[0], routes[0]));
  NSA_RETURN_IF_ERROR(readAll(second, kernels[1], choices[1], routes[1]));
  return CacheDifference{compare(kernels[0], kernels[1]), compare(choices[0], choices[1]),
                         compare(routes[0], routes[1])};
}

} // namespace nsa
