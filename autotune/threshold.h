// Finds the size from which on, or up to which, one way to compute is faster than another. Both ways are measured on a
// grid of sizes. Then the gap is narrowed between the last size where the other way does not pay and the first size
// where it does. "Never" is a possible answer. docs/tuning.md, "Thresholds", says why there is a margin and why the
// other way must pay on the whole side.
// Thread-safety: a pure function of its arguments; the caller's thread calls `measure`.
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace nsa {

// The times of both ways at one size, measured in turns.
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

// Finds the threshold. `grid` must be in ascending order. Fails when the grid is empty or not ascending, and when
// `measure` fails at the first size. When it fails at a later size, the grid ends before that size.
Result<ThresholdReport> findThreshold(const std::vector<int64_t> &grid, const ThresholdOptions &options,
                                      const std::function<Result<SizeTimes>(int64_t size)> &measure);

// Fails when the answer does not cover all sizes from `least` to `most`, and says which size was not measured. A
// threshold, or "never", that was found on fewer sizes says nothing about the others.
Status coversSizes(const ThresholdReport &report, int64_t least, int64_t most);

// Decides by times that were measured, in ascending order of size. nullopt: the other way never pays.
std::optional<int64_t> thresholdOf(const std::vector<SizeTimes> &times, const ThresholdOptions &options);

} // namespace nsa
