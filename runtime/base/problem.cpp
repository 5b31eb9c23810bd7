#include "runtime/base/problem.h"

#include "runtime/base/manifest.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>

namespace nsa {

namespace {

// The names in the order of the enumerators: one list makes printing, parsing and error texts.
constexpr std::string_view kOperatorNames[] = {"dense", "window"};
constexpr std::string_view kDTypeNames[] = {"bf16", "fp16", "fp32", "int32"};
constexpr std::string_view kLayoutNames[] = {"dense", "packed"};

template <size_t N> int indexOf(const std::string_view (&names)[N], std::string_view name) {
  auto found = std::find(std::begin(names), std::end(names), name);
  return found == std::end(names) ? -1 : static_cast<int>(found - std::begin(names));
}

template <typename Enum, size_t N>
Result<Enum> parseEnum(const char *field, const std::string_view (&names)[N], std::string_view name) {
  int index = indexOf(names, name);
  if (index >= 0)
    return static_cast<Enum>(index);
  std::string rule = "must be one of ";
  for (size_t i = 0; i < N; ++i)
    rule.append(i ? ", " : "").append(names[i]);
  return Status::invalid(field, "'" + std::string(name) + "'", std::move(rule));
}

// An enum value that came through the C ABI may hold any number.
template <size_t N> bool inRange(const std::string_view (&)[N], int value) {
  return value >= 0 && value < static_cast<int>(N);
}

std::string bucket(int64_t value) {
  return std::to_string(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(value, 1))));
}

std::string formatFloat(float value) {
  // std::to_string prints 1e-9 as 0.000000, which would name the wrong value in an error.
  char text[32];
  snprintf(text, sizeof text, "%g", static_cast<double>(value));
  return text;
}

} // namespace

std::string_view operatorName(Operator op) { return kOperatorNames[static_cast<int>(op)]; }
std::string_view dtypeName(DType dtype) { return kDTypeNames[static_cast<int>(dtype)]; }
std::string_view layoutName(Layout layout) { return kLayoutNames[static_cast<int>(layout)]; }

Result<Operator> parseOperator(std::string_view name) { return parseEnum<Operator>("op", kOperatorNames, name); }
Result<DType> parseDType(std::string_view name) { return parseEnum<DType>("dtype", kDTypeNames, name); }
Result<Layout> parseLayout(std::string_view name) { return parseEnum<Layout>("layout", kLayoutNames, name); }

int dtypeBytes(DType dtype) { return dtype == DType::kBf16 || dtype == DType::kF16 ? 2 : 4; }

bool lookupEnumerator(std::string_view name, int64_t &value) {
  int index = indexOf(kOperatorNames, name);
  if (index < 0)
    index = indexOf(kDTypeNames, name);
  if (index < 0)
    return false;
  value = index;
  return true;
}

float Spec::effectiveScale() const { return scale != 0 ? scale : 1.0f / std::sqrt(static_cast<float>(qkDim)); }

Status Spec::validate() const {
  if (!inRange(kOperatorNames, static_cast<int>(op)))
    return Status::invalid("op", std::to_string(static_cast<int>(op)), "must be an operator (dense, window)");
  if (!inRange(kDTypeNames, static_cast<int>(dtype)))
    return Status::invalid("dtype", std::to_string(static_cast<int>(dtype)), "must be bf16, fp16 or fp32");
  if (dtype == DType::kI32)
    return Status::invalid("dtype", "int32", "must be bf16, fp16 or fp32");
  if (!inRange(kLayoutNames, static_cast<int>(layout)))
    return Status::invalid("layout", std::to_string(static_cast<int>(layout)), "must be dense or packed");

  const struct {
    const char *name;
    int32_t value;
  } positive[] = {{"query_heads", queryHeads}, {"kv_heads", kvHeads}, {"qk_dim", qkDim}, {"v_dim", vDim}};
  for (const auto &field : positive)
    if (field.value < 1)
      return Status::invalid(field.name, std::to_string(field.value), "must be at least 1");
  if (queryHeads % kvHeads != 0)
    return Status::invalid("query_heads", std::to_string(queryHeads),
                           "must be a multiple of kv_heads = " + std::to_string(kvHeads));
  if (group() > 128)
    return Status::invalid("query_heads", std::to_string(queryHeads),
                           "must be at most 128 times kv_heads = " + std::to_string(kvHeads));
  if (op == Operator::kWindow && window < 1)
    return Status::invalid("window", std::to_string(window), "must be at least 1 (the query's own token counts)");
  if (!std::isfinite(scale) || scale < 0)
    return Status::invalid("scale", formatFloat(scale), "must be finite and positive, or 0 for 1/sqrt(qk_dim)");
  return Status::ok();
}

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
  // up to a tile past the last one.
  constexpr int64_t kLargestTile = 128;
  constexpr int64_t kMostRows = (int64_t{1} << 31) - kLargestTile;
  if (seqlenQ > kMostRows / spec.group())
    return Status::invalid("max_seqlen_q", std::to_string(seqlenQ),
                           "must be at most " + std::to_string(kMostRows / spec.group()) +
                               " with query_heads / kv_heads = " + std::to_string(spec.group()));
  if (seqlenK > kMostRows)
    return Status::invalid("max_seqlen_k", std::to_string(seqlenK), "must be at most " + std::to_string(kMostRows));
  return Status::ok();
}

Problem Problem::make(const Spec &spec, const Maxima &maxima) {
  assert(spec.validate().isOk() && maxima.validate(spec).isOk());
  Problem problem;
  problem.op = std::string(operatorName(spec.op));
  problem.fixed = {{"dtype", std::string(dtypeName(spec.dtype))},
                   {"group", std::to_string(spec.group())},
                   {"packed", spec.layout == Layout::kPacked ? "1" : "0"},
                   {"qk_dim", std::to_string(spec.qkDim)},
                   {"v_dim", std::to_string(spec.vDim)}};
  problem.buckets = {{"batch", bucket(maxima.batch)},
                     {"kv_heads", bucket(spec.kvHeads)},
                     {"seqlen_k", bucket(maxima.seqlenK)},
                     {"seqlen_q", bucket(maxima.seqlenQ)}};
  // A window beyond every length computes what the longest length allows, so it is the same problem.
  if (spec.op == Operator::kWindow)
    problem.buckets["window"] = bucket(std::min<int64_t>(spec.window, maxima.seqlenK));
  return problem;
}

std::string Problem::key() const { return op + " " + formatValues(fixed) + " | " + formatValues(buckets); }

} // namespace nsa
