// The gradients of the whole forward pass in fp64 (docs/specification.md 9): of the gates, of what each branch attends,
// and through compression of the tokens and of phi's weights. Only the gradients of compressed rows are rounded to fp32
// before they go through compression. Nothing flows through the selection of blocks. Checked against differences of
// `forward`.
// Ownership: views borrow. Thread-safety: pure functions.
#pragma once

#include "tools/reference/gradient/attention_gradient.h"
#include "tools/reference/gradient/compression_gradient.h"
#include "tools/reference/nsa.h"

namespace nsa::reference {

struct NsaGradient {
  std::vector<double> gates;                              // [rows, query_heads or kv_heads, 3]
  std::array<AttentionGradient, kBranchCount> branches{}; // of those that are on; cmp: of its compressed rows
  CompressionGradient compression{};                      // of the branch cmp
};

// `result` is what `forward` computed of all rows of the same problem, and `dOut` has the gradient of each element of
// its output.
NsaGradient differentiate(const Nsa &nsa, const NsaResult &result, std::span<const double> dOut);

// The gradients of gates and queries alone, of the rows that `result` has (Nsa::rows). `dOut` has these rows.
NsaGradient differentiateQueries(const Nsa &nsa, const NsaResult &result, std::span<const double> dOut);
// The gradients of some tokens of one sequence alone, where a whole gradient would take too long: what the tokens' keys
// and values get from each branch that is on, [tokens, kv_heads, columns]. `result` has all rows of the branches, and
// either `nsa` or `result` the compressed rows. Starts its own threads.
std::array<KeyGradient, kBranchCount> differentiateTokens(const Nsa &nsa, const NsaResult &result,
                                                          std::span<const double> dOut, const Sequence &sequence,
                                                          std::span<const int64_t> tokens);

} // namespace nsa::reference
