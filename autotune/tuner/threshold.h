// Compares two algorithms that compute the same result: the usual algorithm and an alternative. The threshold is the
// size from which on, or up to which, the alternative is faster. The search first measures both algorithms at a list of
// sizes, which is called the grid. The times of the grid give a first threshold. The search then measures a few sizes
// between the first threshold and its neighbour in the grid, at which the alternative is too slow for a threshold. If
// the alternative is fast enough at no measured size, there is no threshold. docs/tuning.md, "Thresholds", has the rule
// for a threshold. At the threshold the usual algorithm must take at least `margin` times as long as the alternative.
// At every measured size beyond the threshold the alternative must take at most `tolerance` times as long as the usual
// algorithm.
// Thread-safety: all functions may be called by many threads at once. findThreshold calls `measure` on the caller's
// thread.
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace nsa {

// The times of the usual algorithm and of the alternative at one size. The two algorithms are measured in turns.
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

// Returns an error if a size of the grid could not be measured, or if the measured sizes do not reach from `least` to
// `most`. A threshold, or the answer "never", says nothing about sizes outside of the measured range.
Status coversSizes(const ThresholdReport &report, int64_t least, int64_t most);

// Finds the threshold from the measured times, which are in ascending order of size. The result is nullopt if no
// measured size satisfies the rule for a threshold.
std::optional<int64_t> thresholdOf(const std::vector<SizeTimes> &times, const ThresholdOptions &options);

} // namespace nsa
