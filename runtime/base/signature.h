// The type and the dimensions that each tensor must have, and the tensors that apply to a spec (docs/specification.md 2
// and 12).
// Thread-safety: constants.
#pragma once

#include "runtime/base/kernel_arguments.h"

#include <string_view>

namespace nsa {

std::string_view tensorName(TensorName name); // "q", "k_win", "cu_seqlens_q", ...

// Says what the first dimensions of a tensor count, for example queries, keys or compressed blocks. The first
// dimensions of a tensor with the Lead kQueries, kKeys or kBlocks are [batch, time] in the dense layout and [total] in
// the packed layout. Tensors with the Lead kCache or kCacheBlocks begin with [batch, rows of a sequence] in a cache
// without pages and with [pages, rows of a page] in a cache with pages, in both layouts. The first dimensions of a
// tensor with the Lead kRing are [batch, cmp_block].
enum class Lead : uint8_t { kNone, kQueries, kKeys, kBlocks, kCache, kCacheBlocks, kRing, kSequences };

// Says what a later dimension of a tensor counts. Lead describes the first dimensions.
enum class Axis : uint8_t {
  kQueryHeads,
  kKvHeads,
  kGateHeads, // query_heads, or kv_heads with gate_per_group
  kQkDim,
  kVDim,
  kSelCount,
  kBranches, // 3
  kCmpBlock,
  kBlockQk, // cmp_block * qk_dim; kernels address it as two coordinates
  kBlockV,
  kHidden
};
int64_t axisExtent(Axis axis, const Spec &spec);
std::string_view axisSource(Axis axis); // "query_heads", "3 branches", ...

struct TensorRule {
  ElementType type;
  Lead lead;
  uint8_t axisCount;
  std::array<Axis, 3> axes;
  bool contiguous; // the last dimension must be contiguous, and is then no coordinate of the view
};
// Returns the type and the dimensions that a tensor must have. `name` must not be cu_seqlens_q or cu_seqlens_k, which
// have no TensorRule.
const TensorRule &tensorRule(TensorName name);

// Some tensors of an operator (operandsOf) may not apply to a spec, such as the weights of another kind of compression
// or the outputs of a branch that is off. Returns whether a tensor applies.
bool takes(const Spec &spec, TensorName name);

} // namespace nsa
