#include "tools/nsa/files/config_file.h"

#include "tools/nsa/files/file_io.h"
#include "tools/nsa/files/json_input.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace nsa::tools {
namespace {

constexpr uint64_t kMaxConfigBytes = 1 << 20;

struct Key {
  const char *name;
  Status (*read)(const Key &key, const nlohmann::json &value, Spec &spec);
  const char *values = ""; // of a key with names for values
};

template <int32_t Spec::*field, int32_t least = 1>
Status readInteger(const Key &key, const nlohmann::json &value, Spec &spec) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(kMax)) ||
      value.get<int64_t>() < least)
    return Status::invalid(key.name, value.dump(),
                           "must be an integer from " + std::to_string(least) + " to " + std::to_string(kMax));
  spec.*field = static_cast<int32_t>(value.get<int64_t>());
  return Status::ok();
}

template <auto field, auto parse> Status readName(const Key &key, const nlohmann::json &value, Spec &spec) {
  if (value.is_string()) {
    if (auto parsed = parse(value.get<std::string>()); parsed) {
      spec.*field = *parsed;
      return Status::ok();
    }
  }
  return Status::invalid(key.name, value.dump(), std::string("must be one of ") + key.values);
}

Status readBranches(const Key &key, const nlohmann::json &value, Spec &spec) {
  const Status broken = Status::invalid(key.name, value.dump(), "must be a list of some of \"cmp\", \"sel\", \"win\"");
  constexpr std::string_view kNames[] = {"cmp", "sel", "win"}; // in the order of the bits
  if (!value.is_array() || value.empty())
    return broken;
  spec.branches = 0;
  for (const nlohmann::json &name : value) {
    const auto *found =
        name.is_string() ? std::find(std::begin(kNames), std::end(kNames), name.get<std::string>()) : std::end(kNames);
    const int32_t bit = found == std::end(kNames) ? 0 : 1 << (found - std::begin(kNames));
    if (bit == 0 || spec.hasBranch(bit))
      return broken;
    spec.branches |= bit;
  }
  return Status::ok();
}

Status readGatePerGroup(const Key &key, const nlohmann::json &value, Spec &spec) {
  if (!value.is_boolean())
    return Status::invalid(key.name, value.dump(), "must be true or false");
  spec.gatePerGroup = value.get<bool>();
  return Status::ok();
}

Status readScale(const Key &key, const nlohmann::json &value, Spec &spec) {
  if (!value.is_number() || !std::isfinite(value.get<float>()) || value.get<float>() < 0)
    return Status::invalid(key.name, value.dump(), "must be a finite positive number, or 0 for 1/sqrt(qk_dim)");
  spec.scale = value.get<float>();
  return Status::ok();
}

// The one list of keys; names ascending, as error texts show them.
constexpr Key kKeys[] = {
    {"branches", readBranches},
    {"cmp_block", readInteger<&Spec::cmpBlock>},
    {"cmp_kind", readName<&Spec::cmpKind, parseCmpKind>, "mean, linear, mlp"},
    {"cmp_stride", readInteger<&Spec::cmpStride>},
    {"dtype", readName<&Spec::dtype, parseDType>, "bf16, fp16, fp32"},
    {"gate", readName<&Spec::gate, parseGate>, "value, sigmoid, softmax"},
    {"gate_per_group", readGatePerGroup},
    {"init_blocks", readInteger<&Spec::initBlocks, 0>},
    {"kv_heads", readInteger<&Spec::kvHeads>},
    {"layout", readName<&Spec::layout, parseLayout>, "dense, packed"},
    {"local_blocks", readInteger<&Spec::localBlocks>},
    {"mlp_activation", readName<&Spec::mlpActivation, parseActivation>, "relu, gelu, silu"},
    {"mlp_hidden", readInteger<&Spec::mlpHidden>},
    {"page_size", readInteger<&Spec::pageSize, 0>},
    {"qk_dim", readInteger<&Spec::qkDim>},
    {"query_heads", readInteger<&Spec::queryHeads>},
    {"scale", readScale},
    {"sel_block", readInteger<&Spec::selBlock>},
    {"sel_count", readInteger<&Spec::selCount>},
    {"v_dim", readInteger<&Spec::vDim>},
    {"window", readInteger<&Spec::window>},
};

} // namespace

std::string configKeys() {
  std::string text;
  for (const Key &key : kKeys)
    text += (text.empty() ? "" : ", ") + std::string(key.name);
  return text;
}

Status ConfigFile::missing(std::string_view key) const {
  return Status::error(ErrorCode::kInvalidArgument, path + " lacks " + std::string(key),
                       "give it there, or give the tensors with --input");
}

Status ConfigFile::named(const Status &status) const {
  if (!isWhole || status.isOk() || status.error().field.empty())
    return status;
  ErrorInfo info = status.error();
  info.field = path + ": " + info.field;
  return Status(std::move(info));
}

Result<ConfigText> ConfigText::read(const std::string &word) {
  if (const size_t begin = word.find_first_not_of(" \t\r\n"); begin != std::string::npos && word[begin] == '{')
    return ConfigText{"--config", word};
  if (word == "-") {
    Result<std::string> text = readStandardInput(kMaxConfigBytes);
    return text ? Result<ConfigText>({kStandardInput, std::move(*text)}) : text.status();
  }
  Result<std::string> text = readText(word, kMaxConfigBytes);
  return text ? Result<ConfigText>({word, std::move(*text)}) : text.status();
}

Result<ConfigFile> ConfigFile::read(const std::string &word) {
  Result<ConfigText> config = ConfigText::read(word);
  return config ? parse(*config) : config.status();
}

Result<ConfigFile> ConfigFile::parse(const ConfigText &config) {
  Result<nlohmann::json> json = parseJsonObject(config.text, config.name);
  if (!json)
    return json.status();
  ConfigFile file;
  file.path = config.name;
  file.isWhole = true;
  if (const Status status = file.add(*json); !status.isOk())
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
    const auto *key = std::find_if(std::begin(kKeys), std::end(kKeys), [&](const Key &k) { return name == k.name; });
    if (key == std::end(kKeys))
      return Status::error(ErrorCode::kInvalidArgument, path + ": unknown key \"" + name + "\"",
                           "known keys: " + configKeys());
    NSA_RETURN_IF_ERROR(key->read(*key, value, spec));
    given.insert(name);
  }
  return Status::ok();
}

Result<Spec> specOf(Operator op, const ConfigFile &config) {
  const uint32_t fields = fieldsOf(op);
  Spec spec = config.spec;
  spec.op = op;
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
  if ((fields & kPhi) && spec.cmpKind == CmpKind::kMlp && !config.has("mlp_hidden"))
    return config.missing("mlp_hidden");
  NSA_RETURN_IF_ERROR(config.named(spec.validate()));
  return spec;
}

} // namespace nsa::tools
