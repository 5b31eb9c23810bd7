// The operators, as one table. A row of the table says all that the engine has to know of an operator before it looks
// at a spec: its name, its number in the C ABI, the spec fields that it reads, its tensors, what is compiled into its
// kernels, and how its kernels are tuned. docs/specification.md 12 has the operators that a caller may ask for.
// Thread-safety: constants.
#pragma once

#include "runtime/model/tensors.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {

// An enumerator is the index of the operator's row in the table. It is no number of the C ABI (OperatorDef::abi).
enum class Operator : int {
  kDense,
  kWindow,
  kCompress,
  kCmp,
  kSelect,
  kSel,
  kCombine,
  kNsa,
  kDecode,
  kRotate,
  kRotateBwd,
  kCombineBwd,
  kDenseBwd,
  kWindowBwd,
  kCmpBwd,
  kInvert,
  kCompressBwd,
  kSelBwd,
  kNsaBwd,
  // The other enumerators are kernels that run only within a plan of an operator above.
  kSequences,      // checks the lengths in device memory once for all kernels of a plan
  kCacheSequences, // as kSequences, for a cache, whose lengths grow by the new tokens
  kAppend,         // writes new tokens into a cache
  // The kernels of decode for few queries, in which several programs share the keys of a query (Flash-Decoding).
  kSplitCmp,
  kSplitSelWin,
  kScores,     // the scores of selection blocks
  kRank,       // keeps the best blocks of each segment, where there are many blocks
  kChoose,     // chooses the selected blocks
  kAscend,     // writes the chosen blocks as an ascending list for the caller
  kMerge,      // merges the results of the splits, and the branches by their gates
  kDecodeStep, // decode of a few new tokens of each sequence, in one launch
  // The kernels of the gradients of attention.
  kDeltas,
  kAttentionDq,
  kAttentionDkv,
  kSelDq,
  kSelDkv,
  kIndexSlots,
  kIndexRanges,
  kSelDqSlots,
  kSumSlots,
  kSumParts,
  // The kernels that invert lists of blocks.
  kIndexLengths,
  kIndexCounts,
  kIndexStarts,
  kIndexFill,
  kIndexCheck,
  // The kernels of the gradients of compression.
  kCompressDz,   // of the hidden values of a perceptron, which it makes again
  kCompressDx,   // of tokens
  kCompressDw,   // parts of weights
  kCompressDb,   // parts of biases
  kCompressSums, // the sums of the parts, and the gradients of position embeddings
};
inline constexpr size_t kOperators = static_cast<size_t>(Operator::kCompressSums) + 1;

// The fields of a spec that an operator reads. A bit of SpecField stands for one field, or for fields that are always
// read together.
enum SpecField : uint32_t {
  kHeads = 1, // query_heads
  kQk = 2,    // qk_dim, scale
  kV = 4,     // v_dim
  kWindowField = 8,
  kCmpGeometry = 16,            // cmp_block, cmp_stride
  kPhi = 32,                    // cmp_kind
  kSelGeometry = 64,            // sel_block, sel_count
  kForced = 128,                // the fields about blocks that every query selects
  kGates = 256,                 // gate, gate_per_group, branches
  kPages = 512,                 // page_size
  kMlp = 1024,                  // mlp_hidden, mlp_activation: read if cmp_kind is mlp (Spec::fields)
  kRotary = 2048,               // rotary_dims, rotary_base, rotary_style
  kKeyOffsetField = 4096,       // key_offset
  kMakeIndexField = 8192,       // make_index
  kBatchInvariantField = 16384, // batch_invariant
};

// Values that are compiled into the kernels of an operator, beside the dtype and the fields that the operator reads.
enum KernelConstant : uint32_t {
  kLayoutConstant = 1,   // packed
  kPageConstant = 2,     // page_size: a kernel that reads tokens may find them in the pages of a cache
  kQueriesConstant = 4,  // many_queries: few queries want many small programs, many queries fewer that load less
  kRowsConstant = 8,     // many_queries, by the rows of attention
  kSegmentConstant = 16, // segment: the blocks that `rank` compares at once
  kSlotsConstant = 32,   // slots: the partial results of a query
  kStepConstant = 64,    // branches, pairs, room: a step of decode in one launch
  kSplitConstant = 128,  // split_ds: dS enters a product as a sum of two numbers of the io type
};

// Which keys a query of an operator meets.
enum class MetKeys : uint8_t {
  kNone,
  kAll,    // the keys up to its position
  kWindow, // the last of them, as many as the field `window` says
  kBlocks, // the compressed blocks that end at its position or before
  kListed, // the keys in the blocks of its list, up to its position
};

struct Operand {
  enum class Role : uint8_t { kIn, kOptionalIn, kOut, kOptionalOut, kInOut };
  TensorName name;
  TensorName otherwise; // the tensor that serves where `name` is not bound; equal to `name` where there is no other
  Role role;
  View view; // the argument of the kernel, for operators that are a single kernel

  constexpr bool isOptional() const { return role == Role::kOptionalIn || role == Role::kOptionalOut; }
  constexpr bool isWritten() const { return role == Role::kOut || role == Role::kOptionalOut || role == Role::kInOut; }
  constexpr bool isRead() const { return role != Role::kOut && role != Role::kOptionalOut; }
  // True: each call says whether the elements are of the io type or fp32, and whether results are added to them.
  bool isGradient() const { return isWritten() && viewRule(view).elements == ViewElements::kGradient; }
};

struct OperatorDef {
  static constexpr int kInternal = -1;
  // The kind of work for which a kernel's config is chosen.
  enum class Tuning : uint8_t {
    kNone,  // a kernel runs with the config of the least cost, or the operator launches the kernels of other operators
    kAlone, // candidates run by themselves, on tensors that the tuner draws
    kInDecode // candidates run within whole calls of decode, whose other kernels make their inputs
  };
  enum class ElementRule : uint8_t { kOfSpec, kF32 };
  // The lengths of a sequence that shape the operator's tensors.
  enum class Lengths : uint8_t { kNone, kQueries, kKeys, kQueriesAndKeys };

  Operator op;
  std::string_view name;
  int abi = kInternal; // number in nsa_op
  uint32_t fields;     // SpecField
  uint32_t constants = 0;
  ElementRule element = ElementRule::kOfSpec;
  Lengths lengths = Lengths::kQueriesAndKeys;
  Tuning tuning;
  MetKeys keys = MetKeys::kNone;
  // True: one kernel serves all numbers of heads and all lengths, so that a problem has no bucket of them.
  bool servesAllLengths = false;
  bool isWhole = false;  // launches the kernels of other operators, and has no kernel of its own
  bool hasCache = false; // fills a cache, and attends what is in it
  // The same computation with a cache, or without: set for the operators that launch the kernels of others.
  Operator counterpart = op;
  Operator gradientOf = op; // of a gradient: the operator that is differentiated
  // The tile program that defines the operator, if other templates implement it too. The option force_variant chooses
  // one of the templates.
  std::string_view definingTemplate{};
  std::span<const Operand> operands{}; // in the order in which they are checked
  // What plans pass to the operator's kernels besides its operands, the table of sequences and the status word.
  std::span<const View> planViews{};
  // True: each kernel of the operator takes all of them. A kernel that lacks one was made before plans passed it.
  bool takesPlanViews = false;
  // The name of a launch argument that each kernel of a 16-bit type takes, where there is one. A kernel that lacks it
  // was made before plans relied on it.
  std::string_view takesInSixteenBits{};

  constexpr bool isPublic() const { return abi != kInternal; }
  constexpr bool hasQueries() const { return lengths == Lengths::kQueries || lengths == Lengths::kQueriesAndKeys; }
  // True: a query's result is the mean of its keys' values, weighted by their scores.
  constexpr bool isAttention() const { return keys != MetKeys::kNone && (fields & kV); }
  // True: the operator is the sum of branches, of which a spec may have some.
  constexpr bool hasBranches() const { return isWhole && (fields & kGates); }
  // True: the operator computes gradients; of attention; of nsa.
  constexpr bool isGradient() const { return gradientOf != op; }
  constexpr bool isAttentionGradient() const { return isGradient() && isAttention(); }
  constexpr bool isWholeGradient() const { return isGradient() && hasBranches(); }
  // True: the operator computes gradients of weights, which have a value also where there are no tokens.
  bool sumsOverTokens() const;
  constexpr bool isForward() const { return counterpart != op && !hasCache; } // nsa
  // Returns whether plans pass the view to the operator's kernels.
  bool mayTake(View view) const;
  // Returns the names of these views, in the order of their list.
  std::vector<std::string_view> viewNames() const;
  // Returns the operand that the kernel of an operator takes as `view`, or null if there is none.
  const Operand *operandOf(View view) const;
  const Operand *operandOf(TensorName name) const;
  constexpr bool hasKeys() const { return lengths == Lengths::kKeys || lengths == Lengths::kQueriesAndKeys; }
};

// The table, for `definitionOf`, which the way to a plan in memory calls several times.
extern const OperatorDef kOperatorTable[];
// All operators, in the order of Operator. The public ones come first, in the order of their numbers in nsa_op.
std::span<const OperatorDef> operatorTable();
std::span<const OperatorDef> publicOperators();
inline const OperatorDef &definitionOf(Operator op) { return kOperatorTable[static_cast<size_t>(op)]; }
// Returns the row of the operator with this name or with this number in nsa_op, or null if there is none.
const OperatorDef *findOperator(std::string_view name);
const OperatorDef *findPublicOperator(int abi);
// Returns the row of the operator that computes the gradient of `op`, or null if there is none.
const OperatorDef *findGradient(Operator op);
std::string namesOf(std::span<const OperatorDef> operators); // "dense, window, ..."

inline std::string_view operatorName(Operator op) { return definitionOf(op).name; } // "dense", "window", ...
inline uint32_t fieldsOf(Operator op) { return definitionOf(op).fields; }
// Returns whether the operator launches the kernels of other operators.
inline bool isWhole(Operator op) { return definitionOf(op).isWhole; }
// Returns the operator that computes the same as `op`, which must be nsa or decode, over a cache or without one.
inline Operator withCache(Operator op) { return definitionOf(op).hasCache ? op : definitionOf(op).counterpart; }
inline Operator withoutCache(Operator op) { return definitionOf(op).hasCache ? definitionOf(op).counterpart : op; }
// Returns whether a kernel of this operator has several candidates, which tuning can compare.
inline bool isTuned(Operator op) { return definitionOf(op).tuning != OperatorDef::Tuning::kNone; }
// Returns isTuned(Operator) for the operator whose name is `op`, as a stored kernel's manifest names it. An unknown
// name gives true.
bool isTuned(std::string_view op);
// Returns whether the operator has several templates, so that the option force_variant may set one of them.
inline bool hasVariants(Operator op) { return !definitionOf(op).definingTemplate.empty(); }
// Returns the operator's tensors in the order in which they are checked; `takes` (runtime/base/signature.h) returns
// which of them apply to a spec. An internal operator has none.
inline std::span<const Operand> operandsOf(Operator op) { return definitionOf(op).operands; }
// Returns whether the operator reads cu_seqlens in the packed layout. The rows of an operator without keys do not
// depend on their sequence.
inline bool readsLengths(Operator op) { return definitionOf(op).hasKeys(); }

} // namespace nsa
