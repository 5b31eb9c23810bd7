// How decode deals out the keys of few queries (docs/operators.md, "Decode"): how many programs share the keys of one
// in each branch, and where what they find lies in the workspace. Thread-safety: values and pure functions.
#pragma once

#include "runtime/base/kernel_arguments.h"
#include "runtime/base/problem.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace nsa {

// Whether a plan's queries are so few that programs share the keys of one.
bool sharesKeys(const Spec &spec, const Maxima &maxima);

class KeyShares {
public:
  // The weights of all shares of a query's head stand in one row of so many.
  static constexpr int64_t kSlots = 64;

  KeyShares() = default;
  // `processors`: multiprocessors of a GPU, threads of a CPU.
  KeyShares(const Spec &spec, const Maxima &maxima, int64_t processors);

  // Calls place(offset, bytes) for each piece; the offset is then where it lies.
  void placeIn(const std::function<void(size_t &offset, int64_t bytes)> &place);

  // By branch: cmp, sel, win. 0: the branch has no kernel.
  int64_t splits(size_t branch) const { return counts[branch]; }
  int64_t firstSlot(size_t branch) const { return first[branch]; }
  // Behind the last slot of a branch that adds to the output.
  int64_t pastSlot(size_t branch) const { return past[branch]; }

  // Views of the pieces. A row is a query, in the order of all sequences.
  void bindShare(KernelCall &call, std::byte *workspace, size_t branch) const; // split_*
  void bindScores(KernelCall &call, std::byte *workspace) const;               // scores, choose
  void bindSlots(KernelCall &call, std::byte *workspace) const;                // merge

private:
  ViewSlots outputs(std::byte *workspace) const;

  std::array<int64_t, 3> counts = {}, first = {}, past = {};
  int64_t rows = 0, heads = 0, kvHeads = 0, vDim = 0, blocks = 0;
  size_t output = 0, lse = 0, lseHeads = 0, reads = 0, scores = 0;
};

} // namespace nsa
