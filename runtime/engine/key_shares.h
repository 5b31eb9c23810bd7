// What lies in the workspace where programs share the keys of decode's few queries (docs/operators.md, "Decode"): what
// each has found, scores and lists.
// Thread-safety: values and pure functions.
#pragma once

#include "runtime/base/kernel_arguments.h"
#include "runtime/base/key_splits.h"
#include "runtime/base/saturated.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace nsa {

class KeyShares {
public:
  // What all programs find for a query's head stands in rows of so many.
  static constexpr int64_t kSlots = 3 * KeySplits::kMost;

  KeyShares() = default;
  KeyShares(const Spec &spec, const Maxima &maxima);

  // Calls place(offset, bytes) for each piece; the offset is then where it lies.
  void placeIn(const std::function<void(size_t &offset, Saturated bytes)> &place);

  // Views of the pieces. A row is a query, in the order of all sequences.
  void bindCmp(KernelCall &call, std::byte *workspace) const; // split_cmp
  // split_sel_win, for one of its branches or both.
  void bindSelWin(KernelCall &call, std::byte *workspace, bool sel, bool win) const;
  void bindScores(KernelCall &call, std::byte *workspace) const; // scores
  void bindRank(KernelCall &call, std::byte *workspace) const;   // rank, where there is one
  void bindChoice(KernelCall &call, std::byte *workspace) const; // choose, ascend
  void bindSlots(KernelCall &call, std::byte *workspace) const;  // merge

private:
  ViewSlots outputs(std::byte *workspace) const;
  ViewSlots lseSplits(std::byte *workspace) const;
  ViewSlots integers(std::byte *data, int64_t columns) const;
  void bindRows(KernelCall &call, std::byte *scores, int64_t columns) const;
  void bindShare(KernelCall &call, std::byte *workspace, int64_t splits, int64_t firstSlot) const;

  // By branch: how many share, their first slot, and the one behind the last of a branch that adds to the output.
  std::array<int64_t, 3> counts = {}, first = {}, past = {};
  int64_t rows = 0, heads = 0, kvHeads = 0, vDim = 0, selCount = 0;
  // In a query's row: blocks, and what `rank` keeps of their segments, 0 where `choose` takes the blocks.
  int64_t blocks = 0, kept = 0;
  size_t output = 0, lse = 0, lseHeads = 0, reads = 0, scores = 0, keptScores = 0, keptBlocks = 0, choice = 0;
};

} // namespace nsa
