// The rotation of heads by the positions of their tokens (docs/specification.md 3b).
// Ownership: views borrow. Thread-safety: pure functions.
#pragma once

#include "tools/reference/sequence.h"

#include <cstdint>
#include <vector>

namespace nsa::reference {

struct Rotation {
  Spec spec{};             // kv_heads, qk_dim, rotary_dims, rotary_base, rotary_style; the operator says which way
  TensorView x{};          // [.., kv_heads, qk_dim]
  TensorView cos{}, sin{}; // [positions, rotary_dims / 2], as (0, position, 0, pair); without data: angles are computed
  std::vector<Sequence> sequences{};
};

struct Turn {
  double cos = 1, sin = 0;
};

// The turn of a pair at a position; that of rotate_bwd is the opposite one.
Turn turnOf(const Rotation &rotation, int64_t position, int64_t pair);

// [rows, kv_heads, qk_dim]
std::vector<double> rotate(const Rotation &rotation);

} // namespace nsa::reference
