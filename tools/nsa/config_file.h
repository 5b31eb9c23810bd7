// The JSON file that says what is computed, with the keys of the specification (docs/specification.md 1). Every key may
// be left out where tensors or a default can stand in for it; an unknown or repeated one is an error. Thread-safety:
// values.
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
  Spec spec; // what the file gives; all else has its default
  std::set<std::string, std::less<>> given;

  bool has(std::string_view key) const { return given.contains(key); }
  // "x.json lacks qk_dim", with what to do about it.
  Status missing(std::string_view key) const;

  static Result<ConfigFile> read(const std::string &path);
  // The same from an object inside of a file; an error's field is the key alone.
  static Result<ConfigFile> of(const nlohmann::json &object, const std::string &path);
};

// A spec from the file alone: needs the heads and head sizes that the operator reads, and mlp_hidden for an mlp. v_dim
// is qk_dim when left out.
Result<Spec> specOf(Operator op, const ConfigFile &config);

// All keys, in the order of their names: "branches, cmp_block, ...".
std::string configKeys();

} // namespace nsa::tools
