#include "runtime/json/config_file.h"

#include "runtime/base/spec_fields.h"
#include "runtime/base/text.h"
#include "runtime/json/json_input.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace nsa {
namespace {

template <int32_t least>
Status readValue(spec_field::Integer<least>, std::string_view name, const nlohmann::json &value, int32_t &result) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(kMax)) ||
      value.get<int64_t>() < least)
    return Status::invalid(std::string(name), value.dump(),
                           "must be an integer from " + std::to_string(least) + " to " + std::to_string(kMax));
  result = static_cast<int32_t>(value.get<int64_t>());
  return Status::ok();
}

template <auto name, auto parse, typename Enum>
Status readValue(spec_field::Name<name, parse>, std::string_view key, const nlohmann::json &value, Enum &result) {
  const auto parsed = parse(value.is_string() ? value.get<std::string>() : "");
  if (!parsed)
    return Status::invalid(std::string(key), value.dump(), parsed.status().error().rule);
  result = *parsed;
  return Status::ok();
}

Status readValue(spec_field::Branches, std::string_view name, const nlohmann::json &value, int32_t &branches) {
  const Status broken =
      Status::invalid(std::string(name), value.dump(), "must be a list of some of \"cmp\", \"sel\", \"win\"");
  constexpr std::string_view kNames[] = {"cmp", "sel", "win"}; // in the order of the bits
  if (!value.is_array() || value.empty())
    return broken;
  branches = 0;
  for (const nlohmann::json &branch : value) {
    const auto *found = branch.is_string() ? std::find(std::begin(kNames), std::end(kNames), branch.get<std::string>())
                                           : std::end(kNames);
    const int32_t bit = found == std::end(kNames) ? 0 : 1 << (found - std::begin(kNames));
    if (bit == 0 || (branches & bit))
      return broken;
    branches |= bit;
  }
  return Status::ok();
}

Status readValue(spec_field::Flag, std::string_view name, const nlohmann::json &value, bool &result) {
  if (!value.is_boolean())
    return Status::invalid(std::string(name), value.dump(), "must be true or false");
  result = value.get<bool>();
  return Status::ok();
}

Status readValue(spec_field::Positive, std::string_view name, const nlohmann::json &value, float &result) {
  if (!value.is_number() || !std::isfinite(value.get<float>()) || !(value.get<float>() > 0))
    return Status::invalid(std::string(name), value.dump(), "must be a finite number above 0");
  result = value.get<float>();
  return Status::ok();
}

Status readValue(spec_field::Scale, std::string_view name, const nlohmann::json &value, float &result) {
  if (!value.is_number() || !std::isfinite(value.get<float>()) || value.get<float>() < 0)
    return Status::invalid(std::string(name), value.dump(),
                           "must be a finite positive number, or 0 for 1/sqrt(qk_dim)");
  result = value.get<float>();
  return Status::ok();
}

} // namespace

std::string configKeys() {
  std::set<std::string_view> names;
  forEachSpecField([&](auto, const auto &field) { names.insert(field.name); });
  return joined(names, ", ");
}

Status ConfigFile::missing(std::string_view key) const {
  return Status::error(ErrorCode::kInvalidArgument, path + " lacks " + std::string(key),
                       "give it there, or, where the verb has --input, give the tensors");
}

Status ConfigFile::named(const Status &status) const {
  if (!isWhole || status.isOk() || status.error().field.empty())
    return status;
  ErrorInfo info = status.error();
  info.field = path + ": " + info.field;
  return Status(std::move(info));
}

Result<ConfigFile> ConfigFile::parse(const std::string &path, std::string_view text) {
  NSA_ASSIGN_OR_RETURN(nlohmann::json json, parseJsonObject(text, path));
  ConfigFile file;
  file.path = path;
  file.isWhole = true;
  if (const Status status = file.add(json); !status.isOk())
    return file.named(status);
  return file;
}

Result<ConfigFile> ConfigFile::of(const nlohmann::json &object, const std::string &path) {
  ConfigFile config;
  config.path = path;
  NSA_RETURN_IF_ERROR(config.add(object));
  return config;
}

Status ConfigFile::add(const nlohmann::json &object) {
  for (const auto &[name, value] : object.items()) {
    bool isKnown = false;
    Status status = Status::ok();
    forEachSpecField([&](auto kind, const auto &field) {
      if (field.name != name)
        return;
      isKnown = true;
      status = readValue(kind, field.name, value, spec.*field.member);
    });
    if (!isKnown)
      return Status::error(ErrorCode::kInvalidArgument, path + ": unknown key \"" + name + "\"",
                           "known keys: " + configKeys());
    NSA_RETURN_IF_ERROR(status);
    given.insert(name);
  }
  return Status::ok();
}

Result<Spec> specOf(Operator op, const ConfigFile &config) {
  Spec spec = config.spec;
  spec.op = op;
  const uint32_t fields = spec.fields();
  if ((fields & kHeads) && !config.has("query_heads"))
    return config.missing("query_heads");
  if (!config.has("kv_heads"))
    return config.missing("kv_heads");
  if ((fields & kQk) && !config.has("qk_dim"))
    return config.missing("qk_dim");
  if ((fields & kV) && !config.has("v_dim")) {
    if (!config.has("qk_dim"))
      return config.missing("v_dim");
    spec.vDim = spec.qkDim;
  }
  if ((fields & kMlp) && !config.has("mlp_hidden"))
    return config.missing("mlp_hidden");
  spec.clearUnread();
  NSA_RETURN_IF_ERROR(config.named(spec.validate()));
  return spec;
}

} // namespace nsa
