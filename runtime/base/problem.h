// Turns a spec into a problem, the canonical key under which choices are stored. A Problem holds only what can change
// which kernel is best: the values that are compiled in, and batch and lengths rounded up to powers of two (buckets).
// The buckets of a problem choose a kernel; they are never compiled in. One list has the values of problems
// (runtime/model/problem_fields.def).
// Thread-safety: values.
#pragma once

#include "runtime/base/status.h"
#include "runtime/model/enums.h"
#include "runtime/model/operators.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace nsa {

Result<Operator> parseOperator(std::string_view name); // accepts internal operators too
Result<DType> parseDType(std::string_view name);       // accepts the types of nsa_dtype
Result<DType> parseIoDType(std::string_view name);     // accepts the types of a spec's dtype: bf16, fp16, fp32
Result<Layout> parseLayout(std::string_view name);
Result<CmpKind> parseCmpKind(std::string_view name);
Result<Activation> parseActivation(std::string_view name);
Result<Gate> parseGate(std::string_view name);
Result<RotaryStyle> parseRotaryStyle(std::string_view name);
// Every plan asks for the types and sizes of its buffers, so dtypeBytes and ElementTypes::of are inline.
constexpr int dtypeBytes(DType dtype) {
  switch (dtype) {
  case DType::kFp8E4M3:
  case DType::kFp8E5M2:
    return 1;
  case DType::kBf16:
  case DType::kF16:
    return 2;
  case DType::kF32:
  case DType::kI32:
    return 4;
  }
  return 0;
}
// Looks up the number of an enumerator that an expression names: names of operators, dtypes, kinds of compression,
// activations, gates and styles of rotation (`op == window`, `dtype == fp32`, `cmp_kind == mean`). Returns false for a
// name that is no enumerator.
bool lookupEnumerator(std::string_view name, int64_t &value);

// The element types of a spec, one for each role of tensors.
struct ElementTypes {
  DType io = DType::kBf16;
  std::optional<DType> keyValue{}; // absent: as io

  constexpr DType of(TensorRole role) const {
    switch (role) {
    case TensorRole::kIo:
      return io;
    case TensorRole::kKeyValue:
      return keyValue.value_or(io);
    case TensorRole::kScale:
    case TensorRole::kStatistics:
      return DType::kF32;
    case TensorRole::kIndex:
      return DType::kI32;
    }
    return io;
  }
};

// The computation that a caller asks for: the operator, its dtype, its sizes and its options (docs/specification.md 1).
// runtime/model/spec_fields.def has the fields that a caller sets. An operator reads the fields of a Spec that it needs
// and ignores the rest.
struct Spec {
  Operator op = Operator::kWindow;
#define NSA_SPEC_FIELD(type, member, name, group, initial, ...) type member = initial;
#include "runtime/model/spec_fields.def"
  // The scale is limited because kernels subtract the largest score from each score in fp32. For scores of 2^32 the
  // rounding error of the difference between two scores reaches 2^8. A kernel that computes 2 to the power of the
  // difference can then compute 2^256, which overflows fp32. At the greatest scale of 65536, scores stay below 2^32 as
  // long as the product of a query and a key is at most 2^14.
  static constexpr float kMostScale = 65536;
  static constexpr int32_t kMostSelCount = 128;
  // In decode, several programs of a grid may share the keys of one query. keySplits is the greatest number of these
  // programs in each branch; 0 means the number that the rule in key_splits.h gives. Only the engine sets keySplits,
  // because nsa_spec has no such field.
  int32_t keySplits = 0;
  // Whether the gradient of the queries of `sel` is computed block by block, and not query by query (takesSlots in
  // key_splits.h). Only the engine sets it.
  bool dqSlots = false;
  // Whether one kernel does a step of decode (stepServes in routes.h). Only the engine sets it.
  bool decodeStep = false;
  // The element types of roles (spec_fields.def), where they are not `dtype`.
#define NSA_SPEC_TYPE(member, ...) std::optional<DType> member{};
#include "runtime/model/spec_fields.def"

  int32_t group() const { return kvHeads ? queryHeads / kvHeads : 0; }
  // Returns the SpecField bits of the fields that the spec's operator reads.
  uint32_t fields() const;
  float effectiveScale() const;
  int32_t turningDims() const { return rotaryDims ? rotaryDims : qkDim; }
  // log2 of the ratio of the frequencies of two neighbouring pairs, of a spec that rotates. Kernels take it as the sum
  // of two floats.
  double rotaryStep() const;
  ElementTypes types() const { return {dtype, cacheDtype}; }
  // Returns how many places of a list of blocks are forced.
  int64_t forcedBlocks() const;
  // Returns whether the operator reads or makes compressed rows. The branch sel needs them for its scores; a gradient
  // takes lists, and needs none.
  bool compresses() const {
    const OperatorDef &def = definitionOf(op);
    const int32_t compressed = def.isGradient() ? kBranchCmp : kBranchCmp | kBranchSel;
    return (def.fields & kCmpGeometry) && (!(def.fields & kGates) || hasBranch(compressed));
  }
  // Returns whether the operator reads or makes lists of selection blocks.
  bool hasLists() const {
    const OperatorDef &def = definitionOf(op);
    return (def.fields & kSelGeometry) && (!def.hasBranches() || hasBranch(kBranchSel));
  }
  bool hasBranch(int32_t branch) const { return (branches & branch) != 0; }
  // Returns how many compressed blocks `tokens` tokens have: N_c of docs/specification.md 3.
  int64_t compressedBlocks(int64_t tokens) const {
    // cmp_stride may be 0 when compressedBlocks is called, because `validate` does not check the fields about
    // compression for an operator that does not read them.
    return cmpStride < 1 || tokens < cmpBlock ? 0 : (tokens - cmpBlock) / cmpStride + 1;
  }
  // Returns how many keys the last one of `tokens` tokens meets as a query of the operator. A list of blocks is taken
  // to have the query's own block and as many whole ones as it may.
  int64_t keysMet(int64_t tokens) const;
  // Returns how many multiplications with phi's weights make one compressed key and its value.
  double phiProducts() const;
  // Clears fields that the operator does not read, and that are part of kernels' keys: some kernels of decode have the
  // operator of a caller that has no cache. Everything that takes a spec from a caller or a file calls this function.
  void clearUnread();
  // Checks every rule of docs/specification.md 1 that concerns the operator. The error of `validate` names field, value
  // and rule.
  Status validate() const;
};

// The upper bounds for the sizes of a plan's calls (docs/specification.md 2). tokensQ bounds the queries of all
// sequences together: the packed total, or batch * seqlen_q in the dense layout.
struct Maxima {
  int64_t batch = 0;
  int64_t tokensQ = 0;
  int64_t seqlenQ = 0;
  int64_t seqlenK = 0;
  // Lengths of zero are legal (docs/specification.md 1). A batch has at least one sequence. Every bound must fit the
  // 32-bit lengths that kernels take. If a bound breaks a rule, the error names the field of nsa_maxima, such as
  // max_batch.
  Status validate(const Spec &spec) const;
  bool operator==(const Maxima &) const = default;
};

// Returns the maxima by which the kernels and the splits of a plan are chosen. They are the plan's own maxima. If the
// spec has batch_invariant, they are the same for all plans: one sequence, one new token, and a room of 2^20 tokens.
const Maxima &choosingMaxima(const Spec &spec, const Maxima &maxima);

// Returns whether kernels of this spec are measured. All plans with batch_invariant must have the same kernels, so
// theirs are not measured.
inline bool isTuned(const Spec &spec) { return isTuned(spec.op) && !spec.batchInvariant; }

// Returns whether the tuner runs the kernel of this spec within whole calls of decode. A kernel that reads or writes
// the pages of a cache runs in decode only.
bool isTunedInDecode(const Spec &spec);

// The values that identify a problem.
enum class ProblemField : uint8_t {
#define NSA_PROBLEM_FIELD(field, ...) field,
#include "runtime/model/problem_fields.def"
};
#define NSA_PROBLEM_FIELD(...) +1
inline constexpr size_t kProblemFields = 0
#include "runtime/model/problem_fields.def"
    ;

std::string_view problemFieldName(ProblemField field); // "batch", "dtype", ...
// Returns " batch=64", for texts that name a value as a problem key does.
std::string fieldText(ProblemField field, int64_t value);

class Problem {
public:
  enum class Use : uint8_t { kCompiledIn, kBucket, kOfPlan }; // problem_fields.def

  Problem() = default;
  explicit Problem(Operator op) : number(static_cast<uint32_t>(op)) {}
  // The spec and the maxima must have passed validate(). The spec's operator must be a single kernel: `make` does not
  // take nsa and decode, which launch several kernels.
  static Problem make(const Spec &spec, const Maxima &maxima);
  // Takes the values that a problem with these fields (SpecField) and constants (KernelConstant) has, for any operator.
  // No memory is allocated.
  static Problem take(const Spec &spec, const Maxima &maxima, uint32_t fields, uint32_t constants);

  Operator op() const { return static_cast<Operator>(number); }
  std::string opName() const { return std::string(operatorName(op())); }
  // Returns a value; a bucket is given by the base-2 logarithm of its size. The problem must have the value.
  int32_t operator[](ProblemField field) const;
  void set(ProblemField field, int64_t value);
  void drop(ProblemField field);

  // Returns the problem's key in the database: "window dtype=bf16 group=8 packed=0 page_size=0 qk_dim=64 v_dim=64 |
  // batch=1 kv_heads=1 ...".
  std::string key() const;
  // Returns the part of the key before the buckets, which is the same for all problems that a kernel can serve.
  std::string kernelText() const;
  // Returns the values that are constants in the code of the kernel: dtype, qk_dim, ...
  std::map<std::string, std::string> fixed() const;
  // Returns the sizes of the buckets.
  std::map<std::string, int64_t> buckets() const;

  bool operator==(const Problem &) const = default;
  size_t hash() const;

private:
  bool has(size_t field) const { return (present >> field & 1) != 0; }
  std::string text(size_t field) const; // of a value
  std::string texts(Use use) const;     // " batch=2 kv_heads=4 ..."

  uint64_t present = 0;                                // a bit for each ProblemField
  uint32_t number = 0;                                 // of the operator
  std::array<int32_t, kProblemFields | 1> values = {}; // an odd number, so that no padding follows
};

// Returns the bucket of a size: the smallest power of two that is at least `value`, and 1 for a value below 1.
constexpr int64_t bucketOf(int64_t value) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(value, 1))));
}
// Returns the base-2 logarithm of bucketOf(value).
constexpr uint8_t bucketBits(int64_t value) {
  return static_cast<uint8_t>(std::countr_zero(static_cast<uint64_t>(bucketOf(value))));
}

// Returns whether kernels of the problem with this key are measured.
bool isTunedProblem(std::string_view key);
// Returns whether a problem names the value only where it is not 0. The value of a problem that does not name it is 0.
bool isNamedOnlyWhereSet(std::string_view name);
bool isProblemValue(std::string_view name);
// Checks a value that is compiled in: a word of its enumeration, a truth value, or else a size. All further rules are
// `require` lines of templates.
Status checkProblemValue(const std::string &name, const std::string &text);

} // namespace nsa
