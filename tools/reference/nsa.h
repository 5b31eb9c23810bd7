// The whole forward pass (docs/specification.md 3 to 8): from raw inputs to the output and everything on the way there.
// Ownership: views borrow. Thread-safety: pure functions; `forward` starts its own threads.
#pragma once

#include "tools/reference/attention.h"
#include "tools/reference/combination.h"
#include "tools/reference/compression.h"
#include "tools/reference/selection.h"

#include <array>
#include <cstdint>
#include <vector>

namespace nsa::reference {

struct Nsa {
  Spec spec{};
  TensorView q{}, qCmp{}; // qCmp not given: q
  TensorView kCmp{}, vCmp{}, kSel{}, vSel{}, kWin{}, vWin{};
  TensorView gates{};
  Phi phiK{}, phiV{};
  std::vector<Sequence> sequences{};

  // Only these rows are computed, if there are any here; row i of the result is then rows[i].
  std::vector<int64_t> rows{};
  // Given in place of what would be computed: attention outputs are compared on the same list and, where rounding
  // falls on the other side, on the same compressed rows.
  TensorView kComp{}, vComp{};
  BlockListView blockLists{}; // sel_count slots
};

struct NsaResult {
  std::vector<Sequence> sequences; // that were computed: they say which tensor elements belong to which row
  Compressed compressed;           // empty where compressed rows were given, or no branch needs them
  BlockLists blockLists;           // of the branch sel
  std::array<AttentionResult, kBranchCount> branches; // empty where switched off
  std::vector<double> out;                            // [rows, query_heads, v_dim]
  std::vector<int64_t> reads;                         // [rows, kv_heads], of all branches
};

// threads = 0: one per core.
NsaResult forward(const Nsa &nsa, int threads = 0);

// The attention of one branch, over the compressed rows and the lists that `forward` took.
Attention attentionOf(const Nsa &nsa, const NsaResult &result, size_t branch);

} // namespace nsa::reference
