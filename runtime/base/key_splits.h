// Decides how many programs share the keys of one query in each branch of decode (Flash-Decoding): a few queries with
// one program each do not fill a device. The answer depends only on what the problem's key contains, so that a stored
// choice always meets the same number of splits.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/problem.h"

#include <array>
#include <cstdint>

namespace nsa {

// Whether several programs share the keys of one query: in a plan of decode with at most 8 queries in each sequence.
bool sharesKeys(const Spec &spec, const Maxima &maxima);
// Whether the queries, counted over all sequences and kv heads, are so many that a few programs for each of them fill a
// device.
bool hasManyQueries(const Spec &spec, const Maxima &maxima);
// As hasManyQueries, for kernels of attention in which one program takes 128 rows. A row is a pair of a query and a
// head of its group.
bool hasManyRows(const Spec &spec, const Maxima &maxima);

// How many selection blocks a segment has. The kernel `rank` keeps the best blocks of each segment, and `choose`
// compares what was kept. The result is a power of two, at least 128. 0 means that there is no `rank`: comparing all
// blocks with each other takes less time than one more launch, so `choose` does it.
int64_t rankSegment(const Spec &spec, const Maxima &maxima);
// How many blocks `rank` keeps of each segment: at least as many as a list has.
int64_t keptOfSegment(const Spec &spec);

struct KeySplits {
  static constexpr int64_t kMost = 16; // splits of one branch
  std::array<int64_t, 3> counts = {};  // splits of cmp, sel, win; 0 where a branch has no kernel

  // Takes the rule's numbers, or where `spec.keySplits` is not 0 that number for each branch that has enough keys for
  // it.
  static KeySplits make(const Spec &spec, const Maxima &maxima);
  // The slots that `merge` has for the results of splits: the splits of all branches that are on, rounded up to a
  // multiple of 16.
  int64_t slots(const Spec &spec) const;
};

} // namespace nsa
