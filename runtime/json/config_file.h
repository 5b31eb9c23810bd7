// Reads the config file: the JSON text that describes the operator to compute. The keys of a config file are the keys
// of the specification (docs/specification.md 1). A key may be left out if the shapes of the tensors or a default give
// its value. An unknown or repeated key is an error.
// Thread-safety: values.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/base/status.h"

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>

namespace nsa {

struct ConfigFile {
  std::string path;     // what errors call the text, or the file that the object stands in
  bool isWhole = false; // the text, and no object inside of a file
  Spec spec;            // the keys of the text; all other fields have their defaults
  std::set<std::string, std::less<>> given;

  bool has(std::string_view key) const { return given.contains(key); }
  // Returns the error that the config file lacks a key, such as "x.json lacks qk_dim".
  Status missing(std::string_view key) const;
  // Returns the error `status` with the config file's name in front of the key at fault. If the config is an object
  // inside of another file, `status` is returned unchanged.
  Status named(const Status &status) const;

  // Reads a config from a JSON text. An error names `path`, the source of the text, and the key.
  static Result<ConfigFile> parse(const std::string &path, std::string_view text);
  // Reads a config from `object`, a JSON object that is a part of a file. An error about a key of `object` names the
  // key without the path of `object` in the file.
  static Result<ConfigFile> of(const nlohmann::json &object, const std::string &path);

private:
  Status add(const nlohmann::json &object);
};

// Makes a spec from a config file, without tensors whose shapes could give missing numbers. The config file must
// contain the numbers of heads and the head sizes that the operator reads. For the compression kind mlp, the config
// file must also contain mlp_hidden. If the config file lacks v_dim, v_dim is qk_dim.
Result<Spec> specOf(Operator op, const ConfigFile &config);

// Returns all keys of the config file in alphabetical order: "branches, cmp_block, ...".
std::string configKeys();

} // namespace nsa
