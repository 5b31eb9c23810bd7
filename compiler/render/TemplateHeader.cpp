#include "compiler/render/TemplateHeader.h"

#include <algorithm>

namespace nsa {

namespace {

constexpr DriverValue kDriverValues[] = {{"op", true},           {"cpu", true},         {"gpu", true},
                                         {"element", false},     {"dtype_bytes", true}, {"dot_step", true},
                                         {"shared_limit", true}, {"vector_lanes", true}};

} // namespace

std::span<const DriverValue> driverValues() { return kDriverValues; }

Status templateError(const TemplatePlace &place, std::string rule, std::string hint) {
  return Status(ErrorInfo{.code = ErrorCode::kCompileFailed,
                          .field = "template",
                          .value = place.file + ":" + std::to_string(place.line),
                          .rule = std::move(rule),
                          .hint = std::move(hint)});
}

Status templateError(const TemplatePlace &place, const Status &cause) {
  const ErrorInfo &error = cause.error();
  std::string text = error.message;
  if (text.empty())
    text = error.field + " " + error.value + ": " + error.rule;
  return templateError(place, std::move(text), error.hint);
}

bool isTemplateName(std::string_view text) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

Result<int64_t> TemplateHeader::Line::evaluate(const Values &values) const {
  Result<int64_t> value =
      expression.evaluate([&](std::string_view name, int64_t &number) { return values.lookup(name, number); });
  return value ? value : templateError(place, value.status());
}

Result<bool> TemplateHeader::Fixed::isNeeded(const Values &values) const {
  if (!condition.isPresent())
    return true;
  Result<int64_t> value = condition.evaluate(values);
  return value ? Result<bool>(*value != 0) : value.status();
}

bool TemplateHeader::serves(Operator op) const {
  return std::find(operators.begin(), operators.end(), op) != operators.end();
}

} // namespace nsa
