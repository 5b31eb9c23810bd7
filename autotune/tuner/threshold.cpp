#include "autotune/tuner/threshold.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace nsa {

namespace {

Status checkGrid(const std::vector<int64_t> &grid) {
  if (grid.empty())
    return Status::invalid("grid", "empty", "must have at least one size to measure");
  for (size_t i = 0; i < grid.size(); ++i)
    if (grid[i] < 1 || (i > 0 && grid[i] <= grid[i - 1]))
      return Status::invalid("grid", std::to_string(grid[i]), "sizes must be positive and ascend");
  return Status::ok();
}

bool isTime(double milliseconds) { return std::isfinite(milliseconds) && milliseconds > 0; }

class Sweep {
public:
  Sweep(const ThresholdOptions &options, const std::function<Result<SizeTimes>(int64_t)> &measure)
      : options(options), measure(measure) {}

  Result<ThresholdReport> run(const std::vector<int64_t> &grid) {
    for (const int64_t size : grid) {
      if (Status status = add(size); !status.isOk()) {
        if (report.times.empty())
          return status;
        report.end =
            Status::error(status.code(), std::to_string(size) + " could not be measured: " + status.toString());
        break;
      }
    }
    for (int i = 0; i < options.narrowings; ++i)
      if (!narrow())
        break;
    report.threshold = thresholdOf(report.times, options);
    return std::move(report);
  }

private:
  Status add(int64_t size) {
    NSA_ASSIGN_OR_RETURN(SizeTimes times, measure(size));
    if (!isTime(times.usualMs) || !isTime(times.otherMs))
      return Status::error(ErrorCode::kDeviceError, "size " + std::to_string(size) + " took " +
                                                        std::to_string(times.usualMs) + " and " +
                                                        std::to_string(times.otherMs) + " ms");
    times.size = size;
    auto place = std::ranges::lower_bound(report.times, size, {}, &SizeTimes::size);
    report.times.insert(place, times);
    return Status::ok();
  }

  // One size between the threshold so far and its neighbour that does not pay. False: there is nothing to narrow.
  bool narrow() {
    const std::optional<int64_t> threshold = thresholdOf(report.times, options);
    if (!threshold)
      return false;
    auto at = std::ranges::find(report.times, *threshold, &SizeTimes::size);
    const bool isFrom = options.side == PayingSide::kFrom;
    if (isFrom ? at == report.times.begin() : at + 1 == report.times.end())
      return false; // all of the grid pays
    const int64_t low = isFrom ? (at - 1)->size : at->size, high = isFrom ? at->size : (at + 1)->size;
    const double middle = std::sqrt(static_cast<double>(low) * static_cast<double>(high));
    const int64_t size = std::llround(middle / static_cast<double>(options.granule)) * options.granule;
    return size > low && size < high && add(size).isOk();
  }

  const ThresholdOptions &options;
  const std::function<Result<SizeTimes>(int64_t)> &measure;
  ThresholdReport report;
};

} // namespace

std::optional<int64_t> thresholdOf(const std::vector<SizeTimes> &times, const ThresholdOptions &options) {
  std::optional<int64_t> threshold;
  auto look = [&](const SizeTimes &at) {
    if (at.otherMs > options.tolerance * at.usualMs)
      return false;
    if (options.margin * at.otherMs <= at.usualMs)
      threshold = at.size;
    return true;
  };
  // From the far end of the side that pays, until a size that does not.
  if (options.side == PayingSide::kFrom) {
    for (auto at = times.rbegin(); at != times.rend() && look(*at); ++at) {
    }
  } else {
    for (auto at = times.begin(); at != times.end() && look(*at); ++at) {
    }
  }
  return threshold;
}

Status coversSizes(const ThresholdReport &report, int64_t least, int64_t most) {
  NSA_RETURN_IF_ERROR(report.end);
  const int64_t first = report.times.front().size, last = report.times.back().size;
  if (first > least || last < most)
    return Status::invalid("sizes", std::to_string(first) + " to " + std::to_string(last),
                           "must reach from " + std::to_string(least) + " to " + std::to_string(most));
  return Status::ok();
}

Result<ThresholdReport> findThreshold(const std::vector<int64_t> &grid, const ThresholdOptions &options,
                                      const std::function<Result<SizeTimes>(int64_t size)> &measure) {
  NSA_RETURN_IF_ERROR(checkGrid(grid));
  return Sweep(options, measure).run(grid);
}

} // namespace nsa
