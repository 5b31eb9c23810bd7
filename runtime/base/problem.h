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

enum class Operator : int { kDense = 0, kWindow = 1 };
enum class DType : int { kBf16 = 0, kF16 = 1, kF32 = 2, kI32 = 3 };
enum class Layout : int { kDense = 0, kPacked = 1 };

std::string_view operatorName(Operator op); // "dense", "window"
std::string_view dtypeName(DType dtype);    // "bf16", "fp16", "fp32", "int32" as in spec.md 1
std::string_view layoutName(Layout layout); // "dense", "packed"
Result<Operator> parseOperator(std::string_view name);
Result<DType> parseDType(std::string_view name);
Result<Layout> parseLayout(std::string_view name);
int dtypeBytes(DType dtype);
// Operator and dtype names as expression operands (`op == window`, `dtype == fp32`): the enumerator's
// number. False for any other name.
bool lookupEnumerator(std::string_view name, int64_t &value);

// The user's request (spec.md 1). Field names are those of the API and of config files.
struct Spec {
  Operator op = Operator::kWindow;
  DType dtype = DType::kBf16;
  Layout layout = Layout::kDense;
  int32_t queryHeads = 0;
  int32_t kvHeads = 0;
  int32_t qkDim = 0;
  int32_t vDim = 0;
  int32_t window = 512; // tokens, own token included; ignored by dense
  float scale = 0;      // softmax scale; 0 = 1/sqrt(qk_dim)

  int32_t group() const { return queryHeads / kvHeads; }
  float effectiveScale() const;
  // Every rule of spec.md 1; the error names field, value and rule.
  Status validate() const;
};

// Upper bounds that a plan is made for (spec.md 2). Tokens and lengths count per layout:
// max_tokens_q bounds the packed total (dense: batch * seqlen_q).
struct Maxima {
  int64_t batch = 0;
  int64_t tokensQ = 0;
  int64_t seqlenQ = 0;
  int64_t seqlenK = 0;
  // Zero lengths are legal (spec.md 1), a batch has at least one sequence, and every bound fits the
  // 32-bit lengths that kernels receive. The error names the field as the API does: max_batch, ...
  Status validate(const Spec &spec) const;
};

struct Problem {
  // `fixed` is what templates receive; `buckets` only takes part in choosing.
  std::map<std::string, std::string> fixed;   // dtype, group, packed, qk_dim, v_dim
  std::map<std::string, std::string> buckets; // batch, kv_heads, seqlen_k, seqlen_q, window (by operator)
  std::string op;

  // Both arguments have passed validate().
  static Problem make(const Spec &spec, const Maxima &maxima);
  // "window dtype=bf16 group=8 packed=0 qk_dim=64 v_dim=64 | batch=1 kv_heads=1 ...": the database key.
  std::string key() const;
  bool operator==(const Problem &) const = default;
};

} // namespace nsa
