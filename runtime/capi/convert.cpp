#include "runtime/capi/convert.h"

#include "runtime/capi/errors.h"
#include "runtime/capi/sized_structs.h"
#include "runtime/engine/graph/plan_core.h"

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>

namespace nsa::capi {

namespace {

static_assert(NSA_INTERNAL == static_cast<int>(ErrorCode::kInternal));
static_assert(NSA_CMP_MLP == static_cast<int>(CmpKind::kMlp));
static_assert(NSA_SILU == static_cast<int>(Activation::kSilu));
static_assert(NSA_GATE_SOFTMAX == static_cast<int>(Gate::kSoftmax));
static_assert(NSA_ROTARY_INTERLEAVED == static_cast<int>(RotaryStyle::kInterleaved));
static_assert(NSA_BRANCHES_ALL == kAllBranches && NSA_BRANCH_WIN == kBranchWin);
static_assert(NSA_INT32 == static_cast<int>(DType::kI32));
static_assert(NSA_LAYOUT_PACKED == static_cast<int>(Layout::kPacked));
static_assert(NSA_MISS_BACKGROUND == static_cast<int>(MissPolicy::kBackground));
static_assert(NSA_OFF == kOff);
static_assert(NSA_FROM_COMPILER == static_cast<int>(PlanSource::kCompiled));
static_assert(NSA_LOG_OFF == static_cast<int>(LogLevel::kOff) + 1);
#define NSA_TENSOR(name, apiName, text, number, ...) static_assert(apiName == (number));
#include "runtime/model/tensors.def"
static_assert(NSA_NAMES == kTensorNames);

std::string textOf(const char *text) { return text ? text : ""; }

[[gnu::cold]] Status outOfRange(const char *field, int value, const char *rule) {
  return Status::invalid(field, std::to_string(value), rule);
}

// Inlined because a plan from memory converts every field of its spec.
[[gnu::always_inline]] inline Status checkEnum(const char *field, int value, int last, const char *rule) {
  return value >= 0 && value <= last ? Status::ok() : outOfRange(field, value, rule);
}

// Spec::validate checks the ranges of enumerations and numbers.
template <typename Value> Status convertField(const char *, Value value, Value &result) {
  result = value;
  return Status::ok();
}
template <typename ApiEnum, typename Enum>
  requires std::is_enum_v<Enum>
Status convertField(const char *, const ApiEnum &value, Enum &result) {
  result = static_cast<Enum>(numberOf(value));
  return Status::ok();
}
[[gnu::always_inline]] inline Status convertField(const char *name, int32_t value, bool &result) {
  result = value != 0;
  return checkEnum(name, value, 1, "must be 0 or 1");
}

Status convertSwitch(const char *name, int32_t value, Switch &result) {
  result = value == NSA_OFF ? Switch::off() : Switch(value == NSA_ON);
  if (value == NSA_ON || value == 0 || value == NSA_OFF)
    return Status::ok();
  return Status::invalid(name, std::to_string(value), "must be 1 (on), 0 (unset) or -1 (off)");
}

} // namespace

Status convert(const nsa_engine_options *options, std::shared_ptr<nsa_engine *> self, EngineOptions &result) {
  if (!options)
    return Status::ok(); // all defaults
  const bool isOfEarlier = isEarlier(*options);
  nsa_engine_options storage;
  NSA_RETURN_IF_ERROR(readStruct(options, storage, "options"));
#define NSA_OPTION_TEXT(member, name) result.member = textOf(options->name);
#define NSA_OPTION_SWITCH(member, name, variable)                                                                      \
  NSA_RETURN_IF_ERROR(convertSwitch(#name, options->name, result.member));
#define NSA_OPTION_NUMBER(type, member, name) result.member = options->name;
#include "runtime/model/engine_options.def"
  NSA_RETURN_IF_ERROR(checkEnum("unused", options->unused, 0, "must be 0"));
  const int policy = numberOf(options->miss_policy);
  NSA_RETURN_IF_ERROR(checkEnum("miss_policy", policy, NSA_MISS_DEFAULT, "must be a value of nsa_miss_policy, or 0"));
  if (policy != 0)
    result.missPolicy = policy == NSA_MISS_DEFAULT ? MissPolicy::kDefault : static_cast<MissPolicy>(policy);
  NSA_RETURN_IF_ERROR(checkEnum("flags", options->flags, 0, "must be 0"));
  // A host may copy the spec, as far as it knows its fields, and plan with the copy.
  const size_t specBytes = isOfEarlier ? kSpecBytesOf02 : sizeof(nsa_spec);
  if (options->tuned)
    result.tuned = [callback = options->tuned, user = options->tuned_user, self = std::move(self),
                    specBytes](const Spec &spec, const Maxima &maxima) {
      nsa_spec asked = convert(spec);
      asked.size = specBytes;
      const nsa_maxima most = convert(maxima);
      callback(user, *self, &asked, &most);
    };
  if (const std::string steps = textOf(options->fallbacks); !steps.empty()) {
    NSA_ASSIGN_OR_RETURN(result.fallbacks, FallbackSteps::parse("fallbacks", steps));
  }
  const int level = numberOf(options->log_level);
  NSA_RETURN_IF_ERROR(checkEnum("log_level", level, NSA_LOG_OFF, "must be a value of nsa_log_level, or 0"));
  if (level != 0)
    result.logLevel = static_cast<LogLevel>(level - 1);
  if (options->log)
    result.log = [callback = options->log, user = options->log_user,
                  first = isOfEarlier ? 0 : 1](LogLevel told, std::string_view tag, std::string_view message) {
      callback(user, static_cast<nsa_log_level>(static_cast<int>(told) + first), std::string(tag).c_str(),
               std::string(message).c_str());
    };
  return Status::ok();
}

Status convert(const nsa_plan_options *options, bool &compares) {
  nsa_plan_options storage;
  NSA_RETURN_IF_ERROR(readStruct(options, storage, "plan_options"));
  NSA_RETURN_IF_ERROR(checkEnum("compare", options->compare, 1, "must be 0 or 1"));
  NSA_RETURN_IF_ERROR(checkEnum("flags", options->flags, 0, "must be 0"));
  compares = options->compare != 0;
  return Status::ok();
}

Status convert(const nsa_spec *spec, Spec &result) {
  nsa_spec storage;
  NSA_RETURN_IF_ERROR(readStruct(spec, storage, "spec"));
  const OperatorDef *def = findPublicOperator(numberOf(spec->op));
  if (!def)
    return Status::invalid("op", std::to_string(numberOf(spec->op)), "must be one of " + namesOf(publicOperators()));
  result.op = def->op;
#define NSA_SPEC_FIELD(type, member, name, ...) NSA_RETURN_IF_ERROR(convertField(#name, spec->name, result.member));
#include "runtime/model/spec_fields.def"
  result.clearUnread();
  return Status::ok();
}

Status convert(const nsa_maxima *maxima, const Spec &spec, Maxima &result) {
  nsa_maxima storage;
  NSA_RETURN_IF_ERROR(readStruct(maxima, storage, "maxima"));
  result.batch = maxima->max_batch;
  result.tokensQ = maxima->max_tokens_q;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  bool derivable =
      result.batch >= 0 && result.batch <= kMost && maxima->max_seqlen_q >= 0 && maxima->max_seqlen_q <= kMost;
  if (result.tokensQ == 0 && derivable)
    result.tokensQ = std::min(result.batch * maxima->max_seqlen_q, spec.layout == Layout::kPacked ? kMost : INT64_MAX);
  result.seqlenQ = maxima->max_seqlen_q;
  result.seqlenK = maxima->max_seqlen_k;
  return Status::ok();
}

Status convert(std::string_view name, const nsa_tensor *given, Tensor &result) {
  // Text is composed on an error only: this is the launch path.
  auto broken = [&](const char *aspect, std::string value, std::string rule) {
    return Status::invalid(std::string(name) + aspect, std::move(value), std::move(rule));
  };
  nsa_tensor storage;
  NSA_RETURN_IF_ERROR(readStruct(given, storage, name));
  const nsa_tensor &tensor = *given;
  int dtype = numberOf(tensor.dtype);
  if (dtype < NSA_BF16 || dtype > NSA_INT32)
    return broken(".dtype", std::to_string(dtype), "must be a value of nsa_dtype");
  if (tensor.rank < 1 || tensor.rank > kMaxTensorRank)
    return broken(".rank", std::to_string(tensor.rank), "must be from 1 to 5");
  if (tensor.accumulate != 0 && tensor.accumulate != 1)
    return broken(".accumulate", std::to_string(tensor.accumulate), "must be 0 or 1");
  result.data = tensor.data;
  result.accumulate = tensor.accumulate != 0;
  result.dtype = static_cast<DType>(dtype);
  result.rank = tensor.rank;
  std::copy_n(tensor.shape, tensor.rank, result.shape.begin());
  std::copy_n(tensor.strides, tensor.rank, result.strides.begin());
  return Status::ok();
}

Status convert(const nsa_binding *bindings, size_t count, Bindings &result) {
  if (count != 0)
    NSA_RETURN_IF_ERROR(requirePointer(bindings, "bindings"));
  for (size_t i = 0; i < count; ++i) {
    int index = numberOf(bindings[i].name);
    if (index < 0 || index >= kTensorNames)
      return Status::invalid("bindings.name", std::to_string(index), "must be a value of nsa_name");
    auto name = static_cast<TensorName>(index);
    if (!bindings[i].tensor)
      return Status::invalid(std::string(tensorName(name)), "null", "a binding must point to a tensor",
                             "leave out what is absent");
    if (result.find(name))
      return Status::invalid(std::string(tensorName(name)), "bound twice", "each name may be bound once");
    NSA_RETURN_IF_ERROR(convert(tensorName(name), bindings[i].tensor, result[name]));
  }
  return Status::ok();
}

} // namespace nsa::capi
