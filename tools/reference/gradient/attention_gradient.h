// The gradients of the attention operators in fp64: plain loops over the queries and the keys that each of them may
// attend. With dO = the gradient of the output O, P = the weights of the softmax, and delta = rowsum(dO * O):
//   dV = P^T dO,  dS = P * (dO V^T - delta),  dQ = scale * dS K,  dK = scale * dS^T Q
// Nothing flows through log-sum-exps and lists. Checked against differences of `attend`.
// Ownership: views borrow. Thread-safety: pure functions.
#pragma once

#include "tools/reference/attention.h"

namespace nsa::reference {

// Of the keys of one sequence; for cmp of its compressed blocks.
struct KeyGradient {
  std::vector<double> k, v;   // [keys, kv_heads, columns]
  std::vector<bool> attended; // [keys, kv_heads]: a query may attend the key. The gradients of other keys are exactly 0
  std::vector<double> kTerms; // [keys, kv_heads]: as AttentionGradient::qTerms
};

struct AttentionGradient {
  std::vector<double> q;     // [rows, query_heads, qk_dim]
  std::vector<double> delta; // [rows, query_heads]
  // [rows, query_heads]: the sum of the squared norms of the terms of a row of `q`, each with the norm of dO
  // times the norm of V in the place of dO V^T - delta. It says how large a row would be if nothing cancelled.
  std::vector<double> qTerms;
  std::vector<KeyGradient> keys; // of each sequence
};

// `dOut` has the gradient of each element of `result.out`, which `attend` made of the same problem.
AttentionGradient differentiate(const Attention &attention, const AttentionResult &result,
                                const std::vector<double> &dOut);
// The same for queries alone: `keys` of the result is empty.
AttentionGradient differentiateQueries(const Attention &attention, const AttentionResult &result,
                                       const std::vector<double> &dOut);

// What a forward pass saved for the gradients of keys, [rows, query_heads].
struct SavedRows {
  std::vector<double> lse, delta;
};
// The gradients of one key of a sequence alone, [1, kv_heads, columns], where a whole gradient would take too long. It
// takes log-sum-exps and deltas from `saved`. `dOut` is as for `differentiate`.
KeyGradient differentiateKey(const Attention &attention, const Sequence &sequence, int64_t key, const SavedRows &saved,
                             const std::vector<double> &dOut);

} // namespace nsa::reference
