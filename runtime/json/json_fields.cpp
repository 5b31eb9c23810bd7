#include "runtime/json/json_fields.h"

#include "runtime/base/text.h"
#include "runtime/json/nearest_name.h"

#include <algorithm>
#include <bit>

namespace nsa {
namespace {

// More of them in one file is a mistake, not a workload.
constexpr size_t kMostNumbers = 64;

bool isWithin(const nlohmann::json &value, int64_t least, int64_t most) {
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{1} << 62))
    return false;
  return value.get<int64_t>() >= least && value.get<int64_t>() <= most;
}

std::string limits(int64_t least, int64_t most) {
  return "from " + std::to_string(least) + " to " + std::to_string(most);
}

} // namespace

const nlohmann::json *JsonFields::find(std::string_view name) {
  if (std::ranges::find(asked, name) == asked.end())
    asked.emplace_back(name);
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

Result<const nlohmann::json *> JsonFields::need(std::string_view name, const std::string &rule) {
  if (const nlohmann::json *value = find(name))
    return value;
  return Status::invalid(pathOf(name), "(absent)", rule);
}

std::string JsonFields::pathOf(std::string_view name) const {
  return file + ": " + path + (path.empty() ? "" : ".") + std::string(name);
}

Status JsonFields::invalid(std::string_view name, const nlohmann::json &value, std::string rule,
                           std::string hint) const {
  return Status::invalid(pathOf(name), value.dump(), std::move(rule), std::move(hint));
}

Status JsonFields::within(std::string_view name, const Status &status) const {
  ErrorInfo info = status.error();
  info.field = pathOf(name) + (info.field.empty() ? "" : "." + info.field);
  if (!info.message.empty())
    info.message = info.field + ": " + info.message;
  return Status(std::move(info));
}

Result<std::string> JsonFields::text(std::string_view name) {
  const std::string rule = "must be a text of one character at least";
  NSA_ASSIGN_OR_RETURN(const nlohmann::json *value, need(name, rule));
  if (!value->is_string() || value->get_ref<const std::string &>().empty())
    return invalid(name, *value, rule);
  return value->get<std::string>();
}

Result<int64_t> JsonFields::number(std::string_view name, int64_t least, int64_t most) {
  const std::string rule = "must be a whole number " + limits(least, most);
  NSA_ASSIGN_OR_RETURN(const nlohmann::json *value, need(name, rule));
  if (!isWithin(*value, least, most))
    return invalid(name, *value, rule);
  return value->get<int64_t>();
}

Result<std::vector<int64_t>> JsonFields::numbers(std::string_view name, int64_t least, int64_t most) {
  const std::string rule = "must be a list of whole numbers " + limits(least, most) +
                           R"( that ascend, or {"from": A, "to": B} for the powers of two between them)";
  NSA_ASSIGN_OR_RETURN(const nlohmann::json *value, need(name, rule));
  if (value->is_object())
    return range(name, *value, least, most);
  if (!value->is_array() || value->empty() || value->size() > kMostNumbers)
    return invalid(name, *value, rule);
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < value->size(); ++i) {
    const nlohmann::json &element = (*value)[i];
    const std::string place = std::string(name) + "[" + std::to_string(i) + "]";
    if (!isWithin(element, least, most))
      return invalid(place, element, "must be a whole number " + limits(least, most));
    if (!numbers.empty() && element.get<int64_t>() <= numbers.back())
      return invalid(place, element, "must be above the one before it, " + std::to_string(numbers.back()));
    numbers.push_back(element.get<int64_t>());
  }
  return numbers;
}

Result<std::vector<int64_t>> JsonFields::range(std::string_view name, const nlohmann::json &value, int64_t least,
                                               int64_t most) {
  JsonFields fields(value, file, (path.empty() ? "" : path + ".") + std::string(name));
  int64_t ends[2];
  for (const auto &[end, key] : {std::pair(0, "from"), std::pair(1, "to")}) {
    const std::string rule = "must be a power of two " + limits(std::max<int64_t>(least, 1), most);
    NSA_ASSIGN_OR_RETURN(const nlohmann::json *number, fields.need(key, rule));
    if (!isWithin(*number, std::max<int64_t>(least, 1), most) || !std::has_single_bit(number->get<uint64_t>()))
      return fields.invalid(key, *number, rule);
    ends[end] = number->get<int64_t>();
  }
  NSA_RETURN_IF_ERROR(fields.finish());
  if (ends[1] < ends[0])
    return fields.invalid("to", ends[1], "must be at least from = " + std::to_string(ends[0]));
  std::vector<int64_t> numbers;
  for (int64_t number = ends[0]; number <= ends[1]; number *= 2)
    numbers.push_back(number);
  return numbers;
}

Status JsonFields::finish() const {
  const std::vector<std::string_view> known(asked.begin(), asked.end());
  for (const auto &[name, value] : object.items()) {
    if (std::ranges::find(known, name) != known.end())
      continue;
    return invalid(name, value, "is no field there; the fields are " + joined(known, ", "), nearestHint(name, known));
  }
  return Status::ok();
}

} // namespace nsa
