#include "runtime/base/problem.h"

#include "runtime/base/key_splits.h"
#include "runtime/base/text.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace nsa {

namespace {

using Use = Problem::Use;
enum class Presence : uint8_t { kAlways, kOnlyWhereSet }; // problem_fields.def

struct ProblemFieldRule {
  std::string_view name;
  Use use;
  Presence presence;
  Names values; // of an enumeration; empty for numbers
};
constexpr Names kNumber;
constexpr ProblemFieldRule kProblemFieldRules[] = {
#define NSA_PROBLEM_FIELD(field, name, use, presence, condition, value, values)                                        \
  {name, Use::use, Presence::presence, values},
#include "runtime/model/problem_fields.def"
};
static_assert(std::ranges::is_sorted(kProblemFieldRules, {}, &ProblemFieldRule::name), "the order of a problem key");
static_assert(kProblemFields <= 64, "Problem::present has a bit for each field");

const ProblemFieldRule *findRule(std::string_view name) {
  const auto *rule = std::ranges::find(kProblemFieldRules, name, &ProblemFieldRule::name);
  return rule == std::end(kProblemFieldRules) ? nullptr : rule;
}

uint64_t bitOf(ProblemField field) { return uint64_t{1} << static_cast<uint32_t>(field); }

} // namespace

std::string_view problemFieldName(ProblemField field) { return kProblemFieldRules[static_cast<size_t>(field)].name; }

std::string fieldText(ProblemField field, int64_t value) {
  return " " + std::string(problemFieldName(field)) + "=" + std::to_string(value);
}

const Maxima &choosingMaxima(const Spec &spec, const Maxima &maxima) {
  static constexpr Maxima kOfAllPlans{.batch = 1, .tokensQ = 1, .seqlenQ = 1, .seqlenK = int64_t{1} << 20};
  return spec.batchInvariant ? kOfAllPlans : maxima;
}

Problem Problem::take(const Spec &spec, const Maxima &ofPlan, uint32_t fields, uint32_t constants) {
  const Maxima &maxima = choosingMaxima(spec, ofPlan);
  const OperatorDef &def = definitionOf(spec.op);
  Problem problem(spec.op);
#define NSA_PROBLEM_FIELD(field, name, use, presence, condition, value, values)                                        \
  if ((condition) && (Presence::presence == Presence::kAlways || static_cast<int64_t>(value) != 0))                    \
    problem.set(ProblemField::field, static_cast<int64_t>(value));
#include "runtime/model/problem_fields.def"
  return problem;
}

Problem Problem::make(const Spec &spec, const Maxima &maxima) {
  assert(spec.validate().isOk() && maxima.validate(spec).isOk());
  const OperatorDef &def = definitionOf(spec.op);
  assert(!def.isWhole);
  return take(spec, maxima, def.fields, def.constants);
}

int32_t Problem::operator[](ProblemField field) const {
  assert(present & bitOf(field));
  return values[static_cast<size_t>(field)];
}

void Problem::set(ProblemField field, int64_t value) {
  present |= bitOf(field);
  values[static_cast<size_t>(field)] = static_cast<int32_t>(value);
}

void Problem::drop(ProblemField field) {
  present &= ~bitOf(field);
  values[static_cast<size_t>(field)] = 0;
}

std::string Problem::text(size_t field) const {
  const ProblemFieldRule &rule = kProblemFieldRules[field];
  const int32_t value = values[field];
  return !rule.values.empty() ? std::string(rule.values[static_cast<size_t>(value)])
                              : std::to_string(rule.use == Use::kBucket ? int64_t{1} << value : value);
}

std::string Problem::texts(Use use) const {
  std::string result;
  for (size_t i = 0; i < kProblemFields; ++i)
    if (has(i) && kProblemFieldRules[i].use == use)
      result.append(" ").append(kProblemFieldRules[i].name).append("=").append(text(i));
  return result;
}

std::string Problem::kernelText() const { return opName() + texts(Use::kCompiledIn); }

std::string Problem::key() const { return kernelText() + " |" + texts(Use::kBucket); }

std::map<std::string, std::string> Problem::fixed() const {
  std::map<std::string, std::string> result;
  for (size_t i = 0; i < kProblemFields; ++i)
    if (has(i) && kProblemFieldRules[i].use == Use::kCompiledIn)
      result.emplace(kProblemFieldRules[i].name, text(i));
  return result;
}

std::map<std::string, int64_t> Problem::buckets() const {
  std::map<std::string, int64_t> result;
  for (size_t i = 0; i < kProblemFields; ++i)
    if (has(i) && kProblemFieldRules[i].use == Use::kBucket)
      result.emplace(kProblemFieldRules[i].name, int64_t{1} << values[i]);
  return result;
}

bool isNamedOnlyWhereSet(std::string_view name) {
  const ProblemFieldRule *rule = findRule(name);
  return rule && rule->presence == Presence::kOnlyWhereSet;
}

bool isTunedProblem(std::string_view key) {
  return isTuned(key.substr(0, key.find(' '))) && key.find(fieldText(ProblemField::kBatchInvariant, 1)) == key.npos;
}

bool isProblemValue(std::string_view name) { return findRule(name) != nullptr; }

Status checkProblemValue(const std::string &name, const std::string &text) {
  if (const ProblemFieldRule *rule = findRule(name); rule && !rule->values.empty()) {
    if (std::ranges::find(rule->values, text) != rule->values.end())
      return Status::ok();
    std::string words;
    for (const std::string_view word : rule->values)
      words.append(words.empty() ? "" : ", ").append(word);
    return Status::invalid(name, "'" + text + "'", "must be one of " + words);
  }
  constexpr std::string_view kTruthValues[] = {"packed",     "gate_per_group", "many_queries",
                                               "key_offset", "make_index",     "split_ds"};
  constexpr std::string_view kMayBeZero[] = {"page_size", "segment"}; // 0: none
  const bool isTruth = std::ranges::find(kTruthValues, name) != std::end(kTruthValues);
  const bool isFromZero = isTruth || std::ranges::find(kMayBeZero, name) != std::end(kMayBeZero);
  int64_t value = 0;
  if (parseInteger(text, value) && value >= (isFromZero ? 0 : 1) && value <= (isTruth ? 1 : INT32_MAX))
    return Status::ok();
  return Status::invalid(name, text,
                         isTruth
                             ? "must be 0 or 1"
                             : std::string("must be an integer from ") + (isFromZero ? "0" : "1") + " to 2147483647");
}

size_t Problem::hash() const {
  // The hash multiplies pairs of 64-bit words and combines the two halves of each product by XOR, so that the result
  // depends on every bit of both words.
  const auto fold = [](uint64_t a, uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  };
  static_assert(std::has_unique_object_representations_v<Problem>, "the bytes are the identity");
  constexpr size_t kPairs = (sizeof(Problem) + 15) / 16;
  std::array<uint64_t, 2 * kPairs> words = {};
  std::memcpy(words.data(), this, sizeof(Problem));
  uint64_t result = 0x9e3779b97f4a7c15;
  for (size_t pair = 0; pair < kPairs; ++pair)
    result = fold(result ^ words[2 * pair], words[2 * pair + 1] ^ 0xd1b54a32d192ed03);
  return result;
}

} // namespace nsa
