// Spec -> Problem: what the user asks becomes the canonical key under which choices are stored.
// A Problem holds only what may change the best kernel: the values compiled in, and lengths and
// batch as power-of-two buckets (they choose, they are never compiled in). One field list makes
// validation messages, text form and equality; nothing is hashed by hand.
// Thread-safety: values.
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace nsa {

// Those of docs/specification.md 12, and after kDecode the kernels that only serve inside of them.
enum class Operator : int {
  kDense = 0,
  kWindow = 1,
  kCompress = 2,
  kCmp = 3,
  kSelect = 4,
  kSel = 5,
  kCombine = 6,
  kNsa = 7,
  kDecode = 8,
  kSequences = 9,       // lengths in device memory, checked once for all kernels of a plan
  kCacheSequences = 10, // the same for a cache, whose lengths grow by the new tokens
  kAppend = 11,         // new tokens into a cache
  // The branches for few queries, which share out the keys of each (Flash-Decoding).
  kSplitCmp = 12,
  kSplitSelWin = 13,
  kScores = 14, // of selection blocks
  kRank = 15,   // the first ones of each segment, where blocks are many
  kChoose = 16, // the first ones of all
  kAscend = 17, // those as a list for callers
  kMerge = 18,  // what the splits found, and the branches by their gates
};
inline constexpr int kPublicOperators = 9; // numbers of nsa_op
inline constexpr int kOperators = 19;
// The whole forward, which runs the others' kernels.
constexpr bool isWhole(Operator op) { return op == Operator::kNsa || op == Operator::kDecode; }
// Whether kernels of the operator have choices to measure.
constexpr bool isTuned(Operator op) {
  return op != Operator::kSequences && op != Operator::kCacheSequences && op != Operator::kAscend;
}
// Whether an operator is a kernel of decode alone, which has no call of its own.
constexpr bool isPartOfDecode(Operator op) { return op > Operator::kCacheSequences; }
// Whether more than one template serves the operator, so that one may be forced.
constexpr bool hasVariants(Operator op) {
  return op == Operator::kDense || op == Operator::kWindow || op == Operator::kCmp;
}
enum class CmpKind : int { kMean = 0, kLinear = 1, kMlp = 2 };
enum class Activation : int { kRelu = 0, kGelu = 1, kSilu = 2 };
enum class Gate : int { kValue = 0, kSigmoid = 1, kSoftmax = 2 };
enum class DType : int { kBf16 = 0, kF16 = 1, kF32 = 2, kI32 = 3 };
enum class Layout : int { kDense = 0, kPacked = 1 };

std::string_view operatorName(Operator op); // "dense", "window", "compress", ...
std::string_view dtypeName(DType dtype);    // "bf16", "fp16", "fp32", "int32" as in docs/specification.md 1
std::string_view layoutName(Layout layout); // "dense", "packed"
std::string_view cmpKindName(CmpKind kind);
std::string_view activationName(Activation activation);
std::string_view gateName(Gate gate);
Result<Operator> parseOperator(std::string_view name); // kernels' operators included
Result<DType> parseDType(std::string_view name);
Result<Layout> parseLayout(std::string_view name);
Result<CmpKind> parseCmpKind(std::string_view name);
Result<Activation> parseActivation(std::string_view name);
Result<Gate> parseGate(std::string_view name);
int dtypeBytes(DType dtype);
// Names of operators, dtypes, kinds of compression, activations and gates as expression operands (`op == window`,
// `dtype == fp32`, `cmp_kind == mean`): the enumerator's number. False for any other name.
bool lookupEnumerator(std::string_view name, int64_t &value);

// The branches of NSA, as bits of Spec::branches; gates and branch outputs are in this order.
inline constexpr int32_t kBranchCmp = 1, kBranchSel = 2, kBranchWin = 4, kAllBranches = 7;

// What an operator reads of a spec: each bit a field, or fields that go together.
enum SpecField : uint32_t {
  kHeads = 1, // query_heads
  kQk = 2,    // qk_dim, scale
  kV = 4,     // v_dim
  kWindowField = 8,
  kCmpGeometry = 16, // cmp_block, cmp_stride
  kPhi = 32,         // cmp_kind, mlp_hidden, mlp_activation
  kSelGeometry = 64, // sel_block, sel_count
  kForced = 128,     // init_blocks, local_blocks
  kGates = 256,      // gate, gate_per_group, branches
  kPages = 512,      // page_size
};
uint32_t fieldsOf(Operator op);

// The user's request (docs/specification.md 1). Field names are those of the API and of config files. An operator reads
// what it needs and ignores the rest.
struct Spec {
  Operator op = Operator::kWindow;
  DType dtype = DType::kBf16;
  Layout layout = Layout::kDense;
  int32_t queryHeads = 0;
  int32_t kvHeads = 0;
  int32_t qkDim = 0;
  int32_t vDim = 0;
  int32_t window = 512; // tokens, own token included
  // Softmax scale; 0 = 1/sqrt(qk_dim). Kernels subtract the largest score from each in fp32, where a score of 2^32 has
  // a rounding error of 2^8: its power of two is no number. With this scale the products of queries and keys may be
  // 2^14.
  static constexpr float kMostScale = 65536;
  float scale = 0;
  int32_t cmpBlock = 32; // tokens
  int32_t cmpStride = 16;
  int32_t selBlock = 64; // tokens
  int32_t selCount = 16; // blocks of a query and group, forced ones included
  int32_t initBlocks = 1;
  int32_t localBlocks = 2;
  CmpKind cmpKind = CmpKind::kMean;
  int32_t mlpHidden = 0;
  Activation mlpActivation = Activation::kRelu;
  Gate gate = Gate::kValue;
  bool gatePerGroup = false; // gates are [.., kv_heads, 3], else [.., query_heads, 3]
  int32_t branches = kAllBranches;
  int32_t pageSize = 0; // tokens of a cache's page; 0: each sequence's tokens stand together
  // The engine's, no caller's: how many programs at most share the keys of one of decode's few queries in each branch;
  // 0: as many as the rule says (key_splits.h).
  int32_t keySplits = 0;

  int32_t group() const { return kvHeads ? queryHeads / kvHeads : 0; }
  float effectiveScale() const;
  bool hasBranch(int32_t branch) const { return (branches & branch) != 0; }
  // N_c of docs/specification.md 3: how many compressed blocks `tokens` tokens have.
  int64_t compressedBlocks(int64_t tokens) const {
    // Operators that compress nothing leave the fields as they find them.
    return cmpStride < 1 || tokens < cmpBlock ? 0 : (tokens - cmpBlock) / cmpStride + 1;
  }
  // Every rule of docs/specification.md 1 that concerns the operator; the error names field, value and rule.
  Status validate() const;
};

// Upper bounds that a plan is made for (docs/specification.md 2). Tokens and lengths count per layout:
// max_tokens_q bounds the packed total (dense: batch * seqlen_q).
struct Maxima {
  int64_t batch = 0;
  int64_t tokensQ = 0;
  int64_t seqlenQ = 0;
  int64_t seqlenK = 0;
  // Zero lengths are legal (docs/specification.md 1), a batch has at least one sequence, and every bound fits the
  // 32-bit lengths that kernels receive. The error names the field as the API does: max_batch, ...
  Status validate(const Spec &spec) const;
};

struct Problem {
  // `fixed` is what templates receive; `buckets` only takes part in choosing.
  std::map<std::string, std::string> fixed;   // dtype, qk_dim, ...: those that the operator compiles in
  std::map<std::string, std::string> buckets; // batch, kv_heads, seqlen_k, seqlen_q, window (by operator)
  std::string op;

  // Both arguments have passed validate(). For operators that are one kernel: not for nsa and decode.
  static Problem make(const Spec &spec, const Maxima &maxima);
  // "window dtype=bf16 group=8 packed=0 page_size=0 qk_dim=64 v_dim=64 | batch=1 kv_heads=1 ...": the database key.
  std::string key() const;
  bool operator==(const Problem &) const = default;
};

} // namespace nsa
