#include "runtime/engine/choices/problem_key.h"

#include "runtime/base/text.h"

#include <bit>
#include <cstdlib>

namespace nsa {

namespace {

constexpr std::string_view kBar = "|"; // in front of the buckets

int bitsOf(int64_t bucket) { return std::countr_zero(static_cast<uint64_t>(bucket)); }

bool isBucket(int64_t value) { return value > 0 && std::has_single_bit(static_cast<uint64_t>(value)); }

// Appends what `own` has otherwise than `other`. `textOf` writes a value.
template <typename Value, typename TextOf>
void addDifferences(const std::map<std::string, Value> &own, const std::map<std::string, Value> &other, TextOf textOf,
                    std::string &text) {
  for (const auto &[name, value] : own) {
    const auto found = other.find(name);
    if (found != other.end() && found->second == value)
      continue;
    text.append(text.empty() ? "" : ", ").append(name);
    text.append("=" + (found == other.end() ? "none" : textOf(found->second)) + " instead of " + textOf(value));
  }
  for (const auto &[name, value] : other)
    if (!own.contains(name))
      text.append(text.empty() ? "" : ", ").append(name).append("=" + textOf(value) + " instead of none");
}

} // namespace

ProblemKey ProblemKey::of(const Problem &problem) { return {problem.opName(), problem.fixed(), problem.buckets()}; }

std::optional<ProblemKey> ProblemKey::parse(std::string_view text) {
  const std::string_view whole = text;
  ProblemKey key;
  key.op = std::string(takeWord(text));
  for (bool isFixed = true; !text.empty();) {
    const std::string_view word = takeWord(text);
    if (word == kBar) {
      isFixed = false;
      continue;
    }
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos)
      return std::nullopt;
    std::string name(word.substr(0, equals));
    const std::string_view value = word.substr(equals + 1);
    int64_t size = 0;
    if (isFixed)
      key.fixed.emplace(std::move(name), value);
    else if (parseInteger(value, size) && isBucket(size))
      key.buckets.emplace(std::move(name), size);
    else
      return std::nullopt;
  }
  return key.text() == whole ? std::optional(std::move(key)) : std::nullopt;
}

std::string ProblemKey::text() const {
  std::string result = op;
  for (const auto &[name, value] : fixed)
    result.append(" ").append(name).append("=").append(value);
  result.append(" ").append(kBar);
  for (const auto &[name, size] : buckets)
    result.append(" ").append(name).append("=").append(std::to_string(size));
  return result;
}

size_t ProblemKey::fixedDifferences(const ProblemKey &other) const {
  size_t differences = op != other.op;
  for (const auto &[name, value] : fixed) {
    const auto found = other.fixed.find(name);
    differences += found == other.fixed.end() || found->second != value;
  }
  for (const auto &[name, value] : other.fixed)
    differences += !fixed.contains(name);
  return differences;
}

std::optional<ProblemKey::Distance> ProblemKey::distanceTo(const ProblemKey &other) const {
  if (buckets.size() != other.buckets.size())
    return std::nullopt;
  Distance distance;
  for (auto own = buckets.begin(), its = other.buckets.begin(); own != buckets.end(); ++own, ++its) {
    if (own->first != its->first)
      return std::nullopt;
    distance.powers += std::abs(bitsOf(its->second) - bitsOf(own->second));
    distance.size += bitsOf(its->second);
  }
  return distance;
}

std::string ProblemKey::differenceText(const ProblemKey &other) const {
  std::string text;
  addDifferences(fixed, other.fixed, [](const std::string &value) { return value; }, text);
  addDifferences(buckets, other.buckets, [](int64_t size) { return std::to_string(size); }, text);
  return text;
}

} // namespace nsa
