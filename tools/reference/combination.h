// The gated sum of the branches (docs/specification.md 8).
// Ownership: views and spans borrow. Thread-safety: pure functions.
#pragma once

#include "tools/reference/sequence.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace nsa::reference {

inline constexpr size_t kBranchCount = 3; // cmp, sel, win: the order of gates and of bits in Spec::branches

struct Combination {
  Spec spec{};        // gate, gatePerGroup, branches
  TensorView gates{}; // [.., query_heads or kv_heads, 3]
  // [rows, query_heads, v_dim] of the branches that are on; a tensor's come from readRows.
  std::array<std::span<const double>, kBranchCount> branches{};
  std::vector<Sequence> sequences{};
};

// The gates of one query head: what each branch is multiplied with. A softmax is over all three logits, whichever
// branches are on.
std::array<double, kBranchCount> gatesOf(const Combination &combination, const Sequence &sequence, int64_t query,
                                         int64_t head);

// [rows, query_heads, v_dim]
std::vector<double> combine(const Combination &combination);

struct CombinationGradient {
  std::vector<double> gates;                                // [rows, query_heads or kv_heads, 3]
  std::array<std::vector<double>, kBranchCount> branches{}; // [rows, query_heads, v_dim], of those that are on
};

// The gradients of docs/specification.md 9. `dOut` has the gradient of each element that `combine` gives.
CombinationGradient differentiate(const Combination &combination, std::span<const double> dOut);

} // namespace nsa::reference
