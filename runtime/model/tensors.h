// The tensors that a caller binds, and the views of tensors and the numbers that kernels take, with their rules. The
// lists of them are tensors.def and kernel_arguments.def.
// Thread-safety: constants.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace nsa {

// What the elements of a tensor are for. A problem has one element type for each role (ElementTypes in
// runtime/base/problem.h).
enum class TensorRole : uint8_t {
  kIo,         // queries, new keys and values, gates, weights, outputs; gradients, unless a call says otherwise
  kKeyValue,   // keys and values that a cache holds
  kScale,      // factors of keys and values that are stored in fewer bits
  kIndex,      // lengths, lists of blocks, counters
  kStatistics, // fp32 beside the io type: log-sum-exps, scores, cosines, and results that are not complete
};

// The part of a spec that has a tensor (`takes` in runtime/base/signature.h). A spec lacks the tensors of a branch that
// is off, and the weights of another kind of compression.
enum class TensorPart : uint8_t {
  kWhole,
  kImportance, // the scores of blocks: the branch cmp or sel
  kCmp,
  kSel,
  kListIndex, // the branch sel, and make_index where the operator reads this field
  kWin,
  kPhiNotMean, // phi has weights
  kPhiLinear,
  kPhiMlp,
  kKeyOffset, // key_offset is set
};

// Says what the first dimensions of a tensor count, for example queries, keys or compressed blocks. The first
// dimensions of a tensor with the Lead kQueries, kKeys or kBlocks are [batch, time] in the dense layout and [total] in
// the packed layout. Tensors with the Lead kCache or kCacheBlocks begin with [batch, rows of a sequence] in a cache
// without pages and with [pages, rows of a page] in a cache with pages, in both layouts. The first dimensions of a
// tensor with the Lead kRing are [batch, cmp_block]. The first dimension of a tensor with the Lead kPositions counts
// the positions of tokens, at least as many as the longest sequence of a plan has. The only dimension of a tensor with
// the Lead kSequences counts the sequences. The first dimension of a tensor with the Lead kEntries is [batch] in the
// dense layout; in the packed layout the sequences of such a tensor share the last dimension.
enum class Lead : uint8_t {
  kNone,
  kQueries,
  kKeys,
  kBlocks,
  kCache,
  kCacheBlocks,
  kRing,
  kPositions,
  kSequences,
  kEntries
};

// Says what a later dimension of a tensor counts. Lead describes the first dimensions.
enum class Axis : uint8_t {
#define NSA_AXIS(axis, source, extent) axis,
#include "runtime/model/tensors.def"
};
std::string_view axisSource(Axis axis); // "query_heads", "cmp, sel, win", ...

// The numbers of TensorName are part of the C ABI (nsa_name in nsa/nsa.h).
enum class TensorName : int {
#define NSA_TENSOR(name, apiName, text, number, ...) name = number,
#include "runtime/model/tensors.def"
};

// Says whether the last dimension of a tensor must be contiguous. A contiguous dimension is no coordinate of the view.
enum class LastDimension : uint8_t { kStrided, kContiguous };

struct TensorRule {
  std::string_view name; // "q", "k_win", "cu_seqlens_q", ...
  TensorRole role;
  TensorPart part;
  Lead lead;
  bool contiguous; // the last dimension
  uint8_t axisCount = 0;
  std::array<Axis, 3> axes = {};

  constexpr TensorRule(std::string_view name, TensorRole role, TensorPart part, Lead lead, LastDimension last,
                       std::initializer_list<Axis> later)
      : name(name), role(role), part(part), lead(lead), contiguous(last == LastDimension::kContiguous) {
    for (const Axis axis : later)
      axes[axisCount++] = axis;
  }
};
// Returns the element role and the dimensions that a tensor must have.
const TensorRule &tensorRule(TensorName name);
inline std::string_view tensorName(TensorName name) { return tensorRule(name).name; }

// Returns the tensor whose gradient the tensor is: `k_win` for `d_k_win`. Returns nullopt for a tensor that is none.
std::optional<TensorName> gradientOf(TensorName name);

// The tensors that kernels take.
enum class View : int {
#define NSA_VIEW(view, ...) view,
#include "runtime/model/kernel_arguments.def"
};

// What the elements of a view are. Kernels of the same operator may get the same view from tensors of several roles:
// the keys that attention reads are the caller's in one plan, and a cache's in another one.
enum class ViewElements : uint8_t {
  kOfTensor,   // as the role of the tensor or buffer says that a plan binds
  kGradient,   // a result of the io type or of fp32, which a call may add to what the tensor holds
  kIndex,      // int32
  kStatistics, // fp32
};

struct ViewRule {
  std::string_view name;
  int rank; // number of coordinates
  ViewElements elements;
};
const ViewRule &viewRule(View view);

// The numbers that kernels take.
enum class Scalar : int {
#define NSA_SCALAR(scalar, ...) scalar,
#include "runtime/model/kernel_arguments.def"
};
enum class ScalarType : uint8_t { kI32, kF32 };

struct ScalarRule {
  std::string_view name;
  ScalarType type;
};
const ScalarRule &scalarRule(Scalar scalar);

// The lengths of the lists.
#define NSA_TENSOR(...) +1
inline constexpr int kTensorNames = 0
#include "runtime/model/tensors.def"
    ;
#define NSA_VIEW(...) +1
inline constexpr int kViews = 0
#include "runtime/model/kernel_arguments.def"
    ;
#define NSA_SCALAR(...) +1
inline constexpr int kScalars = 0
#include "runtime/model/kernel_arguments.def"
    ;

} // namespace nsa
