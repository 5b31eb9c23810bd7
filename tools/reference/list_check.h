// Is a given block list right (docs/specification.md 5)? The reference's list is; another one is when it differs only
// by a tie. Ownership: borrows. Thread-safety: pure functions; `checkLists` starts its own threads.
#pragma once

#include "tools/reference/selection.h"

#include <cstdint>
#include <span>
#include <string>

namespace nsa::reference {

// Two scores nearer than this, relative to the larger, are a tie: 1e-5 for fp32, 1e-4 for bf16 and fp16.
double tieMargin(DType dtype);

// (lowest chosen - highest left out) / lowest chosen among the unforced blocks of the reference's list: how near it is
// to being another one. Infinite when nothing could be exchanged. Two scores below 2^-100 have the margin 0, as fp32
// underflows there.
double selectionMargin(std::span<const double> scores, const Spec &spec);

// "" when `list` is right for the scores of blocks 0 .. b; else what is wrong with it. A block that was exchanged for
// another one must itself tie with it: a tie at the border excuses no other exchange. Two scores of exactly zero do not
// tie, because every implementation has them exactly, whereas a zero and a score below 2^-100 do.
std::string listError(std::span<const double> scores, const Spec &spec, std::span<const int32_t> list);

struct ListReport {
  int64_t lists = 0;
  int64_t ties = 0;      // where selectionMargin is a tie, so that another list may be right too
  int64_t differing = 0; // unlike the reference's, and right
  int64_t wrong = 0;
  std::string firstWrong; // row, scores and rule; of the lowest row

  bool isRight() const { return wrong == 0; }
  std::string toString() const;
};

// `lists` by row, as `select` gives them. threads = 0: one per core.
ListReport checkLists(const Selection &selection, const BlockLists &lists, int threads = 0);

} // namespace nsa::reference
