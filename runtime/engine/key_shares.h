// Lays out the workspace where several programs share the keys of a query of decode (docs/operators.md, "Decode"): the
// results of each program, the scores and the lists.
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
  // Slots in a row of results. A row holds the results of all programs for one head of one query.
  static constexpr int64_t kSlots = 3 * KeySplits::kMost;

  KeyShares() = default;
  KeyShares(const Spec &spec, const Maxima &maxima);

  // Calls place(offset, bytes) for each piece of the layout. `place` sets `offset` to the piece's place in the
  // workspace.
  void placeIn(const std::function<void(size_t &offset, Saturated bytes)> &place);

  // Each `bind` function fills the views of one kernel's call. Rows of the views are queries, in the order of all
  // sequences.
  void bindCmp(KernelCall &call, std::byte *workspace) const; // split_cmp
  // Fills the views of the kernel split_sel_win, for one or both of the branches sel and win.
  void bindSelWin(KernelCall &call, std::byte *workspace, bool sel, bool win) const;
  void bindScores(KernelCall &call, std::byte *workspace) const; // scores
  void bindRank(KernelCall &call, std::byte *workspace) const;   // rank, where it is launched
  void bindChoice(KernelCall &call, std::byte *workspace) const; // choose, ascend
  void bindSlots(KernelCall &call, std::byte *workspace) const;  // merge

private:
  ViewSlots outputs(std::byte *workspace) const;
  ViewSlots lseSplits(std::byte *workspace) const;
  ViewSlots integers(std::byte *data, int64_t columns) const;
  void bindRows(KernelCall &call, std::byte *scores, int64_t columns) const;
  void bindShare(KernelCall &call, std::byte *workspace, int64_t splits, int64_t firstSlot) const;

  // By branch: how many programs share the keys, the first slot, and the slot behind the last slot of a branch that
  // adds to the output.
  std::array<int64_t, 3> counts = {}, first = {}, past = {};
  int64_t rows = 0, heads = 0, kvHeads = 0, vDim = 0, selCount = 0;
  // In the row of a query: the number of blocks, and how many of them the kernel `rank` keeps; 0 where the kernel
  // `choose` takes all blocks.
  int64_t blocks = 0, kept = 0;
  size_t output = 0, lse = 0, lseHeads = 0, reads = 0, scores = 0, keptScores = 0, keptBlocks = 0, choice = 0;
};

} // namespace nsa
