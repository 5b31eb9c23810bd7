#include "runtime/base/problem.h"

#include "runtime/base/key_splits.h"
#include "runtime/base/saturated.h"
#include "runtime/base/sequence_fields.h"
#include "runtime/base/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <utility>

namespace nsa {

namespace {

constexpr Names kApiDTypeNames = Names(kDTypeNames).first<static_cast<size_t>(DType::kI32) + 1>();
constexpr Names kIoDTypeNames = Names(kDTypeNames).first<static_cast<size_t>(DType::kF32) + 1>();

int indexOf(Names names, std::string_view name) {
  auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

std::string oneOf(Names names) { return "must be one of " + joined(names, ", "); }

template <typename Enum> Result<Enum> parseEnum(const char *field, Names names, std::string_view name) {
  int index = indexOf(names, name);
  if (index >= 0)
    return static_cast<Enum>(index);
  return Status::invalid(field, "'" + std::string(name) + "'", oneOf(names));
}

// An enum value that came through the C ABI may hold any number.
bool inRange(Names names, int value) { return value >= 0 && value < static_cast<int>(names.size()); }

std::string operatorsRule() { return "must be one of " + namesOf(operatorTable()); }

std::string formatFloat(float value) {
  // std::to_string prints 1e-9 as 0.000000, which would name the wrong value in an error.
  char text[32];
  snprintf(text, sizeof text, "%g", static_cast<double>(value));
  return text;
}

} // namespace

Result<Operator> parseOperator(std::string_view name) {
  if (const OperatorDef *found = findOperator(name))
    return found->op;
  return Status::invalid("op", "'" + std::string(name) + "'", operatorsRule());
}
Result<DType> parseDType(std::string_view name) { return parseEnum<DType>("dtype", kApiDTypeNames, name); }
Result<DType> parseIoDType(std::string_view name) { return parseEnum<DType>("dtype", kIoDTypeNames, name); }
Result<Layout> parseLayout(std::string_view name) { return parseEnum<Layout>("layout", kLayoutNames, name); }
Result<CmpKind> parseCmpKind(std::string_view name) { return parseEnum<CmpKind>("cmp_kind", kCmpKindNames, name); }
Result<Activation> parseActivation(std::string_view name) {
  return parseEnum<Activation>("mlp_activation", kActivationNames, name);
}
Result<Gate> parseGate(std::string_view name) { return parseEnum<Gate>("gate", kGateNames, name); }
Result<RotaryStyle> parseRotaryStyle(std::string_view name) {
  return parseEnum<RotaryStyle>("rotary_style", kRotaryStyleNames, name);
}

bool lookupEnumerator(std::string_view name, int64_t &value) {
  const OperatorDef *op = findOperator(name);
  int index = op ? static_cast<int>(op->op) : -1;
  for (const Names names :
       {Names(kDTypeNames), Names(kCmpKindNames), Names(kActivationNames), Names(kGateNames), Names(kRotaryStyleNames)})
    if (index < 0)
      index = indexOf(names, name);
  value = index;
  return index >= 0;
}

uint32_t Spec::fields() const {
  const uint32_t read = fieldsOf(op);
  return (read & kPhi) && cmpKind == CmpKind::kMlp ? read | kMlp : read;
}

void Spec::clearUnread() {
  if (!(fieldsOf(op) & kPages))
    pageSize = 0;
  if (!(fieldsOf(op) & kKeyOffsetField))
    keyOffset = false;
  if (!(fieldsOf(op) & kMakeIndexField))
    makeIndex = false;
  if (!(fieldsOf(op) & kBatchInvariantField))
    batchInvariant = false;
}

int64_t Spec::forcedBlocks() const { return int64_t{initBlocks} + localBlocks; }

float Spec::effectiveScale() const { return scale != 0 ? scale : 1.0f / std::sqrt(static_cast<float>(qkDim)); }

double Spec::rotaryStep() const {
  return fields() & kRotary ? -2 * std::log2(static_cast<double>(rotaryBase)) / turningDims() : 0;
}

namespace {

[[gnu::cold]] Status tooSmall(const char *name, int32_t value, int32_t least, const char *why, const char *hint) {
  return Status::invalid(name, std::to_string(value), "must be at least " + std::to_string(least) + why, hint);
}

// The checks are inlined because a plan from memory checks every field of its spec.
[[gnu::always_inline]] inline Status atLeast(const char *name, int32_t value, int32_t least, const char *why = "",
                                             const char *hint = "") {
  return value >= least ? Status::ok() : tooSmall(name, value, least, why, hint);
}

[[gnu::cold]] Status noMultiple(const char *name, int32_t value, int32_t stride) {
  return Status::invalid(name, std::to_string(value), "must be a multiple of cmp_stride = " + std::to_string(stride));
}

[[gnu::always_inline]] inline Status checkMultiple(const char *name, int32_t value, int32_t stride) {
  return value % stride == 0 ? Status::ok() : noMultiple(name, value, stride);
}

// A spec in which several fields are zero that have another default was never filled with the defaults.
const char *hintOfDefaults(const Spec &spec) {
  const int32_t fields[] = {spec.window, spec.cmpBlock, spec.cmpStride, spec.selBlock, spec.selCount, spec.localBlocks};
  return std::count(std::begin(fields), std::end(fields), 0) > 1 ? "nsa_spec_init sets the defaults" : "";
}

[[gnu::cold]] Status noEnumerator(const char *name, Names names, int value) {
  return Status::invalid(name, std::to_string(value), oneOf(names));
}

[[gnu::always_inline]] inline Status checkEnumerator(const char *name, Names names, int value) {
  return inRange(names, value) ? Status::ok() : noEnumerator(name, names, value);
}

// Every kernel reads and writes its tensors in one type, besides numbers of the types fp32 and int32.
Status notIo(const char *name, DType dtype, DType io, const char *reason) {
  return Status::invalid(name, std::string(dtypeName(dtype)),
                         "must be " + std::string(dtypeName(io)) + ", the dtype: " + reason);
}

} // namespace

int64_t Spec::keysMet(int64_t tokens) const {
  switch (definitionOf(op).keys) {
  case MetKeys::kNone:
    return 0;
  case MetKeys::kAll:
    return tokens;
  case MetKeys::kWindow:
    return std::min<int64_t>(tokens, window);
  case MetKeys::kBlocks:
    return compressedBlocks(tokens);
  case MetKeys::kListed: {
    const int64_t earlier = tokens < 1 ? 0 : (tokens - 1) / selBlock;
    return tokens - (earlier - std::min<int64_t>(earlier, selCount - 1)) * selBlock;
  }
  }
  return 0;
}

double Spec::phiProducts() const {
  const auto ofRow = [this](double dim) {
    return cmpKind == CmpKind::kLinear ? cmpBlock * dim * dim
           : cmpKind == CmpKind::kMlp  ? (double(cmpBlock) + 1) * dim * mlpHidden
                                       : 0;
  };
  return ofRow(qkDim) + ofRow(vDim);
}

Status Spec::validate() const {
  if (static_cast<size_t>(op) >= operatorTable().size())
    return Status::invalid("op", std::to_string(static_cast<int>(op)), operatorsRule());
  if (const int number = static_cast<int>(dtype); !inRange(kIoDTypeNames, number))
    return Status::invalid("dtype",
                           inRange(kDTypeNames, number) ? std::string(dtypeName(dtype)) : std::to_string(number),
                           "must be bf16, fp16 or fp32");
#define NSA_SPEC_TYPE(member, name, reason)                                                                            \
  if (member.value_or(dtype) != dtype)                                                                                 \
    return notIo(#name, *member, dtype, reason);
#include "runtime/model/spec_fields.def"
  NSA_RETURN_IF_ERROR(checkEnumerator("layout", kLayoutNames, static_cast<int>(layout)));

  const uint32_t fields = this->fields();
  const char *hint = hintOfDefaults(*this);
  if (fields & kHeads)
    NSA_RETURN_IF_ERROR(atLeast("query_heads", queryHeads, 1));
  NSA_RETURN_IF_ERROR(atLeast("kv_heads", kvHeads, 1));
  if (fields & kQk)
    NSA_RETURN_IF_ERROR(atLeast("qk_dim", qkDim, 1));
  if (fields & kV)
    NSA_RETURN_IF_ERROR(atLeast("v_dim", vDim, 1));
  if (fields & kHeads) {
    if (queryHeads % kvHeads != 0)
      return Status::invalid("query_heads", std::to_string(queryHeads),
                             "must be a multiple of kv_heads = " + std::to_string(kvHeads));
    if (group() > 128)
      return Status::invalid("query_heads", std::to_string(queryHeads),
                             "must be at most 128 times kv_heads = " + std::to_string(kvHeads));
  }
  if (fields & kWindowField)
    NSA_RETURN_IF_ERROR(atLeast("window", window, 1, " (the query's own token counts)", hint));
  if ((fields & kQk) && !(scale >= 0 && scale <= kMostScale))
    return Status::invalid("scale", formatFloat(scale),
                           "must be above 0 and at most " + formatFloat(kMostScale) + ", or 0 for 1/sqrt(qk_dim)");
  if (fields & kCmpGeometry) {
    NSA_RETURN_IF_ERROR(atLeast("cmp_stride", cmpStride, 1, "", hint));
    NSA_RETURN_IF_ERROR(atLeast("cmp_block", cmpBlock, 1, "", hint));
    NSA_RETURN_IF_ERROR(checkMultiple("cmp_block", cmpBlock, cmpStride));
  }
  if (fields & kSelGeometry) {
    NSA_RETURN_IF_ERROR(atLeast("sel_block", selBlock, 1, "", hint));
    NSA_RETURN_IF_ERROR(atLeast("sel_count", selCount, 1, "", hint));
    if (selCount > kMostSelCount)
      return Status::invalid("sel_count", std::to_string(selCount), "must be at most " + std::to_string(kMostSelCount));
    if (fields & kCmpGeometry)
      NSA_RETURN_IF_ERROR(checkMultiple("sel_block", selBlock, cmpStride));
  }
  if (fields & kForced) {
    NSA_RETURN_IF_ERROR(atLeast("init_blocks", initBlocks, 0));
    NSA_RETURN_IF_ERROR(atLeast("local_blocks", localBlocks, 1, " (the query's own block counts)", hint));
    if (forcedBlocks() > selCount)
      return Status::invalid("sel_count", std::to_string(selCount),
                             "must be at least init_blocks + local_blocks = " + std::to_string(forcedBlocks()));
  }
  if (fields & kRotary) {
    if (turningDims() < 1 || turningDims() % 2 != 0 || turningDims() > qkDim)
      return Status::invalid("rotary_dims", std::to_string(turningDims()),
                             "must be even, positive and at most qk_dim = " + std::to_string(qkDim));
    if (!(rotaryBase > 0) || !std::isfinite(rotaryBase))
      return Status::invalid("rotary_base", formatFloat(rotaryBase), "must be above 0 and finite", hint);
    NSA_RETURN_IF_ERROR(checkEnumerator("rotary_style", kRotaryStyleNames, static_cast<int>(rotaryStyle)));
  }
  if (fields & kPhi)
    NSA_RETURN_IF_ERROR(checkEnumerator("cmp_kind", kCmpKindNames, static_cast<int>(cmpKind)));
  if (fields & kMlp) {
    NSA_RETURN_IF_ERROR(atLeast("mlp_hidden", mlpHidden, 1));
    NSA_RETURN_IF_ERROR(checkEnumerator("mlp_activation", kActivationNames, static_cast<int>(mlpActivation)));
  }
  // Blocks of both kinds lie within a page (docs/specification.md 10).
  if (definitionOf(op).hasCache && (pageSize < 0 || pageSize % selBlock != 0))
    return Status::invalid("page_size", std::to_string(pageSize),
                           "must be a multiple of sel_block = " + std::to_string(selBlock) + ", or 0 for no pages");
  if (fields & kGates) {
    NSA_RETURN_IF_ERROR(checkEnumerator("gate", kGateNames, static_cast<int>(gate)));
    if (branches < 1 || branches > kAllBranches)
      return Status::invalid("branches", std::to_string(branches), "must name at least one of cmp, sel, win");
    if ((fields & kMakeIndexField) && makeIndex && !hasBranch(kBranchSel))
      return Status::invalid("make_index", "1", "must be 0 without the branch sel, which has the lists");
  }
  return Status::ok();
}

namespace {

// Where lists are inverted, kernels number the places of an inverse, the rows that they store for pieces of the lists,
// and the entries of all lists in 32 bits.
using ListSizes = std::array<int64_t, 3>;

[[gnu::cold]] Status tooManyListed(const Spec &spec, const Maxima &maxima, const ListSizes &sizes, int64_t most) {
  const bool packed = spec.layout == Layout::kPacked;
  const std::string queries = packed ? "max_tokens_q" : "max_batch * max_seqlen_q";
  const std::array<std::string, 3> terms = {
      packed
          ? "the places of block_index, max_batch * (floor(max_seqlen_k / sel_block) + 3) + max_tokens_q * sel_count,"
          : "the places of block_index, ceil(max_seqlen_k / sel_block) + 1 + max_seqlen_q * sel_count,",
      "the rows that are stored for pieces of the lists, (max_batch * (floor(max_seqlen_k / sel_block) + 3) + floor(" +
          queries + " * sel_count / " + std::to_string(itemQueries(spec, maxima)) + ")) * sel_block,",
      "the entries of all lists, max_batch * max_seqlen_q * sel_count,"};
  const auto largest = std::ranges::max_element(sizes);
  const std::string &term = terms[static_cast<size_t>(largest - sizes.begin())];
  const std::pair<const char *, int64_t> factors[] = {
      {"max_batch", maxima.batch},      {"max_tokens_q", maxima.tokensQ}, {"max_seqlen_q", maxima.seqlenQ},
      {"max_seqlen_k", maxima.seqlenK}, {"sel_block", spec.selBlock},     {"sel_count", spec.selCount}};
  std::string values;
  for (const auto &[name, value] : factors)
    if (term.find(name) != std::string::npos)
      values += (values.empty() ? "" : " ") + std::string(name) + "=" + std::to_string(value);
  return Status::invalid("maxima", std::move(values),
                         term + " must be at most " + std::to_string(most) + ", and are " +
                             (*largest == Saturated::kMost ? "more than " : "") + std::to_string(*largest),
                         "split the batch into several calls");
}

} // namespace

Status Maxima::validate(const Spec &spec) const {
  const struct {
    const char *name;
    int64_t value;
    int64_t least;
    bool fits32; // received by kernels as a 32-bit number
  } bounds[] = {{"max_batch", batch, 1, true},
                {"max_tokens_q", tokensQ, 0, spec.layout == Layout::kPacked},
                {"max_seqlen_q", seqlenQ, 0, true},
                {"max_seqlen_k", seqlenK, 0, true}};
  for (const auto &bound : bounds) {
    if (bound.value < bound.least)
      return Status::invalid(bound.name, std::to_string(bound.value),
                             "must be at least " + std::to_string(bound.least));
    if (bound.fits32 && bound.value > std::numeric_limits<int32_t>::max())
      return Status::invalid(bound.name, std::to_string(bound.value), "must be below 2^31");
  }
  // Kernels number the rows of a sequence, one for each query and head of the group, and its keys in 32 bits, and count
  // up to a tile past the last one. Keys they also count up to a block past the last one, and for the gradients of
  // phi's weights they count blocks, which may be as many as keys, in steps of 1024.
  constexpr int64_t kLargestTile = 128;
  constexpr int64_t kMostRows = (int64_t{1} << 31) - kLargestTile;
  const int64_t block =
      std::max(spec.fields() & kSelGeometry ? spec.selBlock : 0, spec.fields() & kCmpGeometry ? spec.cmpStride : 0);
  const OperatorDef &def = definitionOf(spec.op);
  const int64_t step = def.isGradient() && (spec.fields() & kPhi) && spec.cmpKind != CmpKind::kMean ? 1024 : 0;
  const int64_t mostKeys = std::min(kMostRows, (int64_t{1} << 31) - std::max(block, step));
  const int64_t group = std::max(spec.group(), 1);
  if (seqlenQ > kMostRows / group)
    return Status::invalid("max_seqlen_q", std::to_string(seqlenQ),
                           "must be at most " + std::to_string(kMostRows / group) +
                               " with query_heads / kv_heads = " + std::to_string(group));
  if (seqlenK > mostKeys)
    return Status::invalid("max_seqlen_k", std::to_string(seqlenK),
                           "must be at most " + std::to_string(mostKeys) +
                               (mostKeys == kMostRows ? ""
                                : step > block        ? ", which is 2^31 - 1024, with gradients of phi's weights"
                                                      : ", which is 2^31 less the tokens of a block"));
  if (spec.keyOffset && (spec.fields() & kKeyOffsetField) && seqlenK > kMostOffsetKeys)
    return Status::invalid("max_seqlen_k", std::to_string(seqlenK), "must be at most 2^30 - 128 with key_offset");
  // The rows of a packed batch whose lengths no kernel reads are one sequence.
  if (spec.layout == Layout::kPacked && !readsLengths(spec.op) && tokensQ > kMostRows / group)
    return Status::invalid("max_tokens_q", std::to_string(tokensQ),
                           "must be at most " + std::to_string(kMostRows / group) + " for " + std::string(def.name) +
                               " with query_heads / kv_heads = " + std::to_string(group));
  const bool hasIndex =
      def.fields & kMakeIndexField ? spec.makeIndex : def.operandOf(TensorName::kBlockIndex) != nullptr;
  if (spec.hasLists() && (def.isGradient() || hasIndex)) {
    // Gradients alone store rows for pieces. In the packed layout the places of the index bound the entries of all
    // lists.
    const ListSizes sizes = {indexPlaces(spec, *this),
                             def.isGradient() ? (Saturated(piecesOfAll(spec, *this)) * spec.selBlock).value() : 0,
                             spec.layout == Layout::kPacked ? 0 : (Saturated(batch) * seqlenQ * spec.selCount).value()};
    if (std::ranges::max(sizes) > kMostRows)
      return tooManyListed(spec, *this, sizes, kMostRows);
  }
  // What gradients of keys are parts of lies in rows for the keys of all sequences.
  if ((def.isAttentionGradient() || def.isWholeGradient()) && spec.layout == Layout::kDense &&
      (Saturated(batch) * seqlenK).value() > kMostRows)
    return Status::invalid("max_batch", std::to_string(batch),
                           "max_batch * max_seqlen_k must be at most " + std::to_string(kMostRows) + " for " +
                               std::string(def.name) + " with max_seqlen_k = " + std::to_string(seqlenK),
                           "split the batch into several calls");
  // No sequence has more queries than keys, so no run could use such a bound.
  if (def.hasQueries() && def.hasKeys() && seqlenQ > seqlenK)
    return Status::invalid("max_seqlen_q", std::to_string(seqlenQ),
                           "must be at most max_seqlen_k = " + std::to_string(seqlenK) +
                               ": queries are the last tokens of their sequence");
  if (!def.hasCache)
    return Status::ok();
  // Decode's kernels count keys in floats. They number the new tokens, and the tokens of an unfinished block before
  // them, in 32 bits.
  constexpr int64_t kMostKeys = int64_t{1} << 22;
  if (seqlenK > kMostKeys)
    return Status::invalid("max_seqlen_k", std::to_string(seqlenK),
                           "must be at most " + std::to_string(kMostKeys) + " where it decodes");
  const int64_t staged = (spec.layout == Layout::kPacked ? tokensQ : batch * seqlenQ) + batch * (spec.cmpBlock - 1);
  if (staged > kMostRows)
    return Status::invalid("max_batch", std::to_string(batch),
                           "all sequences' new tokens, with cmp_block - 1 more of each, must be at most " +
                               std::to_string(kMostRows));
  return Status::ok();
}

bool isTunedInDecode(const Spec &spec) {
  const OperatorDef &def = definitionOf(spec.op);
  return def.tuning == OperatorDef::Tuning::kInDecode || (spec.pageSize > 0 && (def.constants & kPageConstant));
}

} // namespace nsa
