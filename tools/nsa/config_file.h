// The JSON file that says what is computed. Its keys are those of the specification (docs/specification.md 1). A key
// may be left out where tensors or a default give its value. An unknown or repeated key is an error.
// Thread-safety: values.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/base/status.h"

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>

namespace nsa::tools {

struct ConfigFile {
  std::string path;
  Spec spec; // the keys of the file; all other fields have their defaults
  std::set<std::string, std::less<>> given;

  bool has(std::string_view key) const { return given.contains(key); }
  // The error "x.json lacks qk_dim", with a hint.
  Status missing(std::string_view key) const;

  static Result<ConfigFile> read(const std::string &path);
  // Reads the keys of an object within a file. The field of an error is then the key alone.
  static Result<ConfigFile> of(const nlohmann::json &object, const std::string &path);
};

// Makes a spec from the file alone. The file must have the heads and head sizes that the operator reads, and mlp_hidden
// for an mlp. v_dim is qk_dim when it is left out.
Result<Spec> specOf(Operator op, const ConfigFile &config);

// All keys in alphabetical order: "branches, cmp_block, ...".
std::string configKeys();

} // namespace nsa::tools
