// Finds the size from which on, or up to which, one way to compute is faster than another. The times of the two ways to
// compute are measured on a grid of sizes. After the grid, the search narrows the gap between the last size where the
// other way is not faster and the first size where it is faster. The answer may be that the other way is never faster.
// docs/tuning.md, "Thresholds", says why the other way must be faster by a margin, and on the whole side of the
// threshold.
// Thread-safety: a pure function of its arguments; the caller's thread calls `measure`.
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace nsa {

// The times of two ways to compute the same result at one size, measured in turns.
struct SizeTimes {
  int64_t size = 0;
  double usualMs = 0, otherMs = 0;
};

enum class PayingSide {
  kFrom, // large sizes: a threshold is the least size that pays
  kUpTo, // small sizes: a threshold is the greatest
};

struct ThresholdOptions {
  PayingSide side = PayingSide::kFrom;
  double margin = 1.2;     // at the threshold the other way must be at least this many times as fast
  double tolerance = 1.05; // on the rest of its side it may take at most this many times as long
  int narrowings = 3;      // further sizes that are measured between two sizes of the grid
  int64_t granule = 16;    // the further sizes are multiples of it
};

struct ThresholdReport {
  std::optional<int64_t> threshold; // nullopt: never
  std::vector<SizeTimes> times;     // ascending by size
  Status end;                       // why the sizes at the end of the grid could not be measured; ok: all were
};

// Finds the threshold. `grid` must be in ascending order. The search fails when the grid is empty or not ascending, and
// when `measure` fails at the first size. When `measure` fails at a later size of the grid, the search uses only the
// smaller sizes.
Result<ThresholdReport> findThreshold(const std::vector<int64_t> &grid, const ThresholdOptions &options,
                                      const std::function<Result<SizeTimes>(int64_t size)> &measure);

// The check fails when the answer does not cover all sizes from `least` to `most`, and says which size was not
// measured. A threshold, or the answer "never", says nothing about sizes outside of the measured range.
Status coversSizes(const ThresholdReport &report, int64_t least, int64_t most);

// Finds the threshold from the measured times, which are in ascending order of size. The result is nullopt if the
// second of the two ways to compute is never faster.
std::optional<int64_t> thresholdOf(const std::vector<SizeTimes> &times, const ThresholdOptions &options);

} // namespace nsa
