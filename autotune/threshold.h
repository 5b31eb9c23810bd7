// Finds the threshold of another way to compute a result: the size from which on, or up to which, it is faster than the
// usual way to compute the result. The times of the two ways to compute are first measured at a list of sizes, which is
// called the grid. Then the search for the threshold measures further sizes, between the threshold that the grid gives
// and the next size of the grid where the other way to compute is not faster. The search for the threshold may find
// that the other way to compute is never faster than the usual way. docs/tuning.md, "Thresholds", says why the other
// way to compute must be faster by a margin at the threshold, and why all measured sizes on its side of the threshold
// count.
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
// when `measure` fails at the first size. When `measure` fails at a later size of `grid`, findThreshold uses only the
// smaller sizes.
Result<ThresholdReport> findThreshold(const std::vector<int64_t> &grid, const ThresholdOptions &options,
                                      const std::function<Result<SizeTimes>(int64_t size)> &measure);

// coversSizes fails when a size of the grid could not be measured, or when the measured sizes do not reach from `least`
// to `most`. A threshold, or the answer "never", says nothing about sizes outside of the measured range.
Status coversSizes(const ThresholdReport &report, int64_t least, int64_t most);

// Finds the threshold from the measured times, which are in ascending order of size. The result is nullopt if the
// second of the two ways to compute is never faster.
std::optional<int64_t> thresholdOf(const std::vector<SizeTimes> &times, const ThresholdOptions &options);

} // namespace nsa
