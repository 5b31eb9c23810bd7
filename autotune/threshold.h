// From which size on, or up to which, one way to compute something pays against another: measured on a grid of sizes,
// then narrowed between the last size where it does not and the first where it does. "Never" is an answer.
// Why a margin and why the whole side must hold: docs/tuning.md, "Thresholds".
// Thread-safety: a pure function of its arguments; `measure` is called by the caller's thread.
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace nsa {

// Both ways at one size, measured in turns.
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
  double margin = 1.2;     // at the threshold the other way must be so many times as fast
  double tolerance = 1.05; // on the rest of its side it may be no slower than this many times
  int narrowings = 3;      // further sizes between two of the grid
  int64_t granule = 16;    // those are multiples of it
};

struct ThresholdReport {
  std::optional<int64_t> threshold; // nullopt: never
  std::vector<SizeTimes> times;     // ascending by size
  Status end;                       // why sizes at the end of the grid could not be measured; ok: all were
};

// `grid` ascends. Fails with an empty or unordered grid, and with what `measure` fails with at the first size; a later
// size that cannot be measured ends the grid there, on the side of the sizes that were.
Result<ThresholdReport> findThreshold(const std::vector<int64_t> &grid, const ThresholdOptions &options,
                                      const std::function<Result<SizeTimes>(int64_t size)> &measure);

// Whether the answer is one for all sizes, where everything happens from `least` to `most`: an error says what was not
// measured. A threshold, or "never", of fewer sizes says nothing of the others.
Status coversSizes(const ThresholdReport &report, int64_t least, int64_t most);

// The decision over what was measured, ascending by size: nullopt when the other way never pays.
std::optional<int64_t> thresholdOf(const std::vector<SizeTimes> &times, const ThresholdOptions &options);

} // namespace nsa
