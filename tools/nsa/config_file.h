// The config file: the JSON text that says what is computed. The keys of a config file are the keys of the
// specification (docs/specification.md 1). A key may be left out where tensors or a default give its value. An unknown
// or repeated key is an error.
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

// What --config names: a file, "-" for standard input, or the JSON itself, which begins with '{' after blanks. An error
// calls it by `name`: the file's, "standard input" or "--config".
struct ConfigText {
  std::string name, text;

  static Result<ConfigText> read(const std::string &word);
};

struct ConfigFile {
  std::string path;     // what errors call the text, or the file that the object stands in
  bool isWhole = false; // the text, and no object inside of a file
  Spec spec;            // the keys of the text; all other fields have their defaults
  std::set<std::string, std::less<>> given;

  bool has(std::string_view key) const { return given.contains(key); }
  // The error "x.json lacks qk_dim", with a hint.
  Status missing(std::string_view key) const;
  // An error about a key, with the name of the text in front where this is the whole text.
  Status named(const Status &status) const;

  // Reads what ConfigText::read gives. An error of ConfigText names the text and the key.
  static Result<ConfigFile> read(const std::string &word);
  static Result<ConfigFile> parse(const ConfigText &config);
  // Reads the keys of an object within a file. The field of an error about such a key is the key alone.
  static Result<ConfigFile> of(const nlohmann::json &object, const std::string &path);

private:
  Status add(const nlohmann::json &object);
};

// Makes a spec from the config file alone. The file must have the heads and head sizes that the operator reads, and
// mlp_hidden for an mlp. v_dim is qk_dim when it is left out.
Result<Spec> specOf(Operator op, const ConfigFile &config);

// All keys in alphabetical order: "branches, cmp_block, ...".
std::string configKeys();
// What the help says of a value that ConfigText::read takes.
inline constexpr const char *kConfigValue = "JSON file, - for standard input, or the JSON itself";

} // namespace nsa::tools
