#include "tools/nsa/config_file.h"

#include "tools/nsa/file_io.h"
#include "tools/nsa/json_input.h"

#include <cmath>
#include <limits>

namespace nsa::tools {
namespace {

constexpr uint64_t kMaxBytes = 1 << 20;

Status readInteger(const std::string &key, const nlohmann::json &value, std::optional<int32_t> &target) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(kMax)) || value.get<int64_t>() < 1)
    return Status::invalid(key, value.dump(), "must be an integer from 1 to " + std::to_string(kMax));
  target = static_cast<int32_t>(value.get<int64_t>());
  return Status::ok();
}

template <typename T, typename Parse>
Status readName(const std::string &key, const nlohmann::json &value, const char *names, Parse parse,
                std::optional<T> &target) {
  if (value.is_string()) {
    if (Result<T> parsed = parse(value.get<std::string>()); parsed) {
      target = *parsed;
      return Status::ok();
    }
  }
  return Status::invalid(key, value.dump(), std::string("must be one of ") + names);
}

struct Key {
  const char *name;
  Status (*read)(const std::string &, const nlohmann::json &, ConfigFile &);
};

// The one list of keys; names ascending, as error texts show them.
constexpr Key kKeys[] = {
    {"dtype", [](const std::string &key, const nlohmann::json &value,
                 ConfigFile &config) { return readName(key, value, "bf16, fp16, fp32", parseDType, config.dtype); }},
    {"kv_heads", [](const std::string &key, const nlohmann::json &value,
                    ConfigFile &config) { return readInteger(key, value, config.kvHeads); }},
    {"layout", [](const std::string &key, const nlohmann::json &value,
                  ConfigFile &config) { return readName(key, value, "dense, packed", parseLayout, config.layout); }},
    {"qk_dim", [](const std::string &key, const nlohmann::json &value,
                  ConfigFile &config) { return readInteger(key, value, config.qkDim); }},
    {"query_heads", [](const std::string &key, const nlohmann::json &value,
                       ConfigFile &config) { return readInteger(key, value, config.queryHeads); }},
    {"scale",
     [](const std::string &key, const nlohmann::json &value, ConfigFile &config) -> Status {
       if (!value.is_number() || !std::isfinite(value.get<float>()) || value.get<float>() < 0)
         return Status::invalid(key, value.dump(), "must be a finite positive number, or 0 for 1/sqrt(qk_dim)");
       config.scale = value.get<float>();
       return Status::ok();
     }},
    {"v_dim", [](const std::string &key, const nlohmann::json &value,
                 ConfigFile &config) { return readInteger(key, value, config.vDim); }},
    {"window", [](const std::string &key, const nlohmann::json &value,
                  ConfigFile &config) { return readInteger(key, value, config.window); }},
};

Status missing(const ConfigFile &config, const char *key) {
  return Status::error(ErrorCode::kInvalidArgument, config.path + " lacks " + key,
                       "give it there, or give the tensors with --input");
}

} // namespace

Result<ConfigFile> ConfigFile::read(const std::string &path) {
  Result<std::string> text = readText(path, kMaxBytes);
  if (!text)
    return text.status();
  Result<nlohmann::json> json = parseJsonObject(*text, path);
  if (!json)
    return json.status();
  ConfigFile config;
  config.path = path;
  for (const auto &[name, value] : json->items()) {
    const Key *found = nullptr;
    std::string known;
    for (const Key &key : kKeys) {
      known += (known.empty() ? "" : ", ") + std::string(key.name);
      if (name == key.name)
        found = &key;
    }
    if (!found)
      return Status::error(ErrorCode::kInvalidArgument, path + ": unknown key \"" + name + "\"",
                           "known keys: " + known);
    NSA_RETURN_IF_ERROR(found->read(name, value, config));
  }
  return config;
}

Result<Spec> specOf(Operator op, const ConfigFile &config) {
  if (!config.queryHeads)
    return missing(config, "query_heads");
  if (!config.kvHeads)
    return missing(config, "kv_heads");
  if (!config.qkDim)
    return missing(config, "qk_dim");
  Spec spec;
  spec.op = op;
  spec.dtype = config.dtype.value_or(spec.dtype);
  spec.layout = config.layout.value_or(spec.layout);
  spec.queryHeads = *config.queryHeads;
  spec.kvHeads = *config.kvHeads;
  spec.qkDim = *config.qkDim;
  spec.vDim = config.vDim.value_or(spec.qkDim);
  spec.window = config.window.value_or(spec.window);
  spec.scale = config.scale.value_or(spec.scale);
  NSA_RETURN_IF_ERROR(spec.validate());
  return spec;
}

} // namespace nsa::tools
