#include "cache/rows/merge.h"

#include "cache/rows/choice_rows.h"
#include "cache/rows/kernel_rows.h"
#include "cache/rows/route_rows.h"
#include "cache/rows/use_rows.h"

#include <map>
#include <optional>

namespace nsa {

namespace {

using sqlite::Connection;

class Merge {
public:
  Merge(Connection &to, Connection &from, Prefer prefer, MergeReport &report)
      : to(to), from(from), takeSource(prefer == Prefer::kSource), report(report) {}

  int mergeChoice(const StoredChoice &theirs) {
    std::optional<StoredChoice> ours;
    if (const int code = readChoice(to, theirs.problem, theirs.device, ours))
      return code;
    bool isTheirs = !ours || wins(theirs, *ours), isLost = false, usable = false;
    // Our choice would stay, but it cannot serve without its kernel.
    if (!isTheirs && ours->content != theirs.content) {
      if (const int code = findKernel(ours->content, usable))
        return code;
      isTheirs = isLost = !usable;
    }
    // Also for a choice that stays: its kernel may be damaged here and whole there.
    if (isTheirs || ours->content == theirs.content)
      if (const int code = takeKernel(theirs.content, usable))
        return code;
    if (isLost && usable)
      report.lost.push_back(ours->content);
    if (ours && theirs.tuned && ours->tuned && *ours != theirs)
      report.conflicts.push_back(
          {theirs.problem + " on " + theirs.device, ours->content, theirs.content, isTheirs && usable});
    if (!isTheirs || !usable || (ours && *ours == theirs)) {
      report.keptChoices += ours.has_value();
      return SQLITE_OK;
    }
    ++(ours ? report.replacedChoices : report.addedChoices);
    return writeChoiceRow(to, theirs);
  }

  int mergeRoute(const StoredRoute &theirs) {
    std::optional<StoredRoute> ours;
    if (const int code = readRoute(to, theirs.family, theirs.device, theirs.name, ours))
      return code;
    if (ours && *ours != theirs)
      report.conflicts.push_back({theirs.family + " on " + theirs.device + " " + theirs.name,
                                  std::to_string(ours->threshold), std::to_string(theirs.threshold), takeSource});
    if (ours && (*ours == theirs || !takeSource)) {
      ++report.keptRoutes;
      return SQLITE_OK;
    }
    ++(ours ? report.replacedRoutes : report.addedRoutes);
    return writeRouteRow(to, theirs);
  }

  const UseLog &uses() const { return taken; }

private:
  bool wins(const StoredChoice &theirs, const StoredChoice &ours) const {
    return theirs.tuned != ours.tuned ? theirs.tuned : takeSource;
  }

  // Whether the kernel is whole on either side; then it is in the destination afterwards.
  int findKernel(const std::string &content, bool &usable) {
    if (const int code = checkKernel(to, content, usable); code != SQLITE_OK || usable)
      return code;
    KernelRow row;
    RowState state;
    const int code = readKernelRow(from, content, row, state);
    if (code != SQLITE_OK || state != RowState::kIntact)
      return code;
    return takeKernel(content, usable);
  }

  // Whether the kernel is in the destination afterwards.
  int takeKernel(const std::string &content, bool &usable) {
    if (auto known = kernels.find(content); known != kernels.end()) {
      usable = known->second;
      return SQLITE_OK;
    }
    if (const int code = checkKernel(to, content, usable))
      return code;
    if (!usable) {
      KernelRow row;
      RowState state;
      if (const int code = readKernelRow(from, content, row, state))
        return code;
      usable = state == RowState::kIntact;
      if (usable) {
        if (const int code = writeKernelRow(to, row))
          return code;
        ++report.kernels;
      } else {
        report.damaged.push_back(content);
      }
    }
    kernels[content] = usable;
    if (usable)
      taken.note(content);
    return SQLITE_OK;
  }

  Connection &to, &from;
  const bool takeSource;
  MergeReport &report;
  std::map<std::string, bool> kernels; // whether they can be used, of those that were looked at
  UseLog taken;
};

} // namespace

int mergeRows(Connection &to, Connection &from, Prefer prefer, int64_t day, MergeReport &report) {
  std::vector<StoredChoice> choices;
  std::vector<StoredRoute> routes;
  if (const int code = listChoiceRows(from, choices))
    return code;
  if (const int code = listRouteRows(from, routes))
    return code;
  Merge merge(to, from, prefer, report);
  for (const StoredChoice &choice : choices)
    if (const int code = merge.mergeChoice(choice))
      return code;
  for (const StoredRoute &route : routes)
    if (const int code = merge.mergeRoute(route))
      return code;
  return merge.uses().write(to, day);
}

} // namespace nsa
