// Computes the offsets in the workspace of the results, scores and block lists that the kernels of decode pass to each
// other when several programs share the keys of a query (docs/operators.md, "Decode").
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
  // The greatest number of partial results for one query and query head. In each of the three branches, every program
  // that shares the keys of the query computes one partial result.
  static constexpr int64_t kSlots = 3 * KeySplits::kMost;

  KeyShares() = default;
  KeyShares(const Spec &spec, const Maxima &maxima);

  // Calls place(offset, bytes) for each array that the kernels need. `place` must set `offset` to the array's offset in
  // the workspace, in bytes.
  void placeIn(const std::function<void(size_t &offset, Saturated bytes)> &place);

  // Each `bind` function sets the views in `call` for one kernel. In the views that the `bind` functions set, each row
  // belongs to one query, and the rows of a sequence follow the rows of the previous sequence.
  void bindCmp(KernelCall &call, std::byte *workspace) const; // split_cmp
  // Sets the views for the kernel split_sel_win, which computes the branches sel and win or one of them.
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

  // For each branch: the number of programs that share the keys, the index of its first partial result, and the index
  // after its last partial result.
  std::array<int64_t, 3> counts = {}, first = {}, past = {};
  int64_t rows = 0, heads = 0, kvHeads = 0, vDim = 0, selCount = 0;
  // `blocks` is the number of selection blocks of a query. `kept` is how many of the blocks the kernel `rank` keeps; it
  // is 0 if `rank` is not launched.
  int64_t blocks = 0, kept = 0;
  size_t output = 0, lse = 0, lseHeads = 0, reads = 0, scores = 0, keptScores = 0, keptBlocks = 0, choice = 0;
};

} // namespace nsa
