// Lists the tensors that an operator takes, with the type and the dimensions of each tensor. The engine uses this list
// both to check calls and to fill the arguments of kernels (docs/specification.md 2 and 12).
// Thread-safety: constants.
#pragma once

#include "runtime/base/kernel_arguments.h"

#include <span>
#include <string_view>

namespace nsa {

// The numbers of TensorName are part of the C ABI (nsa_name in nsa/nsa.h).
enum class TensorName : int {
  kQ,
  kK,
  kV,
  kKWin,
  kVWin,
  kOut,
  kLse,
  kCuSeqlensQ,
  kCuSeqlensK,
  kQCmp,
  kKCmp,
  kVCmp,
  kKSel,
  kVSel,
  kKComp,
  kVComp,
  kBlockList,
  kGates,
  kOCmp,
  kOSel,
  kOWin,
  kLseCmp,
  kLseSel,
  kLseWin,
  kReads,
  kPeK,
  kPeV,
  kWK,
  kWV,
  kBK,
  kBV,
  kW1K,
  kW1V,
  kB1K,
  kB1V,
  kW2K,
  kW2V,
  kB2K,
  kB2V,
  kKCache,
  kVCache,
  kKSelCache,
  kVSelCache,
  kKWinCache,
  kVWinCache,
  kKCompCache,
  kVCompCache,
  kKRaw,
  kVRaw,
  kBlockTable,
  kCacheSeqlens
};
inline constexpr int kTensorNames = 51;
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

struct Operand {
  enum class Role : uint8_t { kIn, kOptionalIn, kOut, kOptionalOut, kInOut };
  TensorName name;
  TensorName otherwise; // the tensor that serves where `name` is not bound; equal to `name` where there is no other
  Role role;
  View view; // the argument of the kernel, for operators that are a single kernel

  bool isOptional() const { return role == Role::kOptionalIn || role == Role::kOptionalOut; }
  bool isWritten() const { return role == Role::kOut || role == Role::kOptionalOut || role == Role::kInOut; }
  bool isRead() const { return role != Role::kOut && role != Role::kOptionalOut; }
};

// The operator's tensors in the order in which they are checked. Some tensors of an operator may not apply to a spec,
// such as the weights of another kind of compression or the outputs of a branch that is off: `takes` returns whether a
// tensor applies.
std::span<const Operand> operandsOf(Operator op);
bool takes(const Spec &spec, TensorName name);
// Returns whether the operator reads cu_seqlens in the packed layout.
bool readsLengths(Operator op);

} // namespace nsa
