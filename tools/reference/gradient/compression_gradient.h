// The gradients of compression in fp64 (docs/specification.md 9): each block sends the gradient of its row back through
// phi, and what tokens and weights get from the blocks of all heads and sequences is added up. The rounding of
// compressed rows counts as the identity, and relu'(0) is 0. Checked against differences of `PhiFunction`.
// Ownership: views borrow. Thread-safety: pure functions.
#pragma once

#include "tools/reference/compression.h"

namespace nsa::reference {

// Of K or of V; D is the head size.
struct CompressedGradient {
  std::vector<double> tokens; // [key rows, kv_heads, D], the rows as `keyRows` numbers them
  std::vector<bool> covered; // [key rows, kv_heads]: a block has the token. The gradients of other tokens are exactly 0
  PhiGradient phi;
};

struct CompressionGradient {
  CompressedGradient k, v;
};

// `dK` and `dV` have the gradients of the compressed rows, where `compress` puts the rows.
CompressionGradient differentiate(const Compression &compression, const TensorView &dK, const TensorView &dV);

// The hidden values of K and of V that lie near the kink of relu in some block (PhiFunction::findNearKink).
struct NearKink {
  std::set<int64_t> k, v;
};
NearKink findNearKink(const Compression &compression);

} // namespace nsa::reference
