// How many programs share the keys of one query in each branch of decode: few queries are too few programs to fill a
// device (Flash-Decoding). A function of what a problem's key tells, so that one stored choice has one answer.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/problem.h"

#include <array>
#include <cstdint>

namespace nsa {

// Whether a plan's queries are so few that programs share the keys of one.
bool sharesKeys(const Spec &spec, const Maxima &maxima);
// Whether they are so many, all sequences and key heads together, that a program for each fills a device.
bool hasManyQueries(const Spec &spec, const Maxima &maxima);
// The same where a program of attention takes 128 rows, pairs of a query and a head of its group.
bool hasManyRows(const Spec &spec, const Maxima &maxima);

// Selection blocks of a segment, of which `rank` keeps the first before `choose` compares what was kept: a power of two
// of at least 128. 0: comparing all blocks with all is less work than a launch, so `choose` does it.
int64_t rankSegment(const Spec &spec, const Maxima &maxima);
// How many `rank` keeps of each segment: at least the list.
int64_t keptOfSegment(const Spec &spec);

struct KeySplits {
  static constexpr int64_t kMost = 16; // of one branch
  std::array<int64_t, 3> counts = {};  // by branch: cmp, sel, win; 0 where it has no kernel

  // By the rule, or by `keySplits` of the spec: as many, where a branch has keys enough for them.
  static KeySplits make(const Spec &spec, const Maxima &maxima);
  // What `merge` makes room for: the splits of the branches that are on, in steps of 16.
  int64_t slots(const Spec &spec) const;
};

} // namespace nsa
