// Reads the value of the option --config.
// Thread-safety: pure functions, but for reading standard input.
#pragma once

#include "runtime/json/config_file.h"

#include <string>

namespace nsa::tools {

// The JSON text that the option --config gives: the content of a file, standard input for "-", or the option's value
// itself if its first character after blanks is '{'. Error messages show `name` as the source of the text: the file's
// name, "standard input" or "--config".
struct ConfigText {
  std::string name, text;

  static Result<ConfigText> read(const std::string &word);
};

// Reads the config that `word`, the value of the option --config, gives.
Result<ConfigFile> readConfig(const std::string &word);

// The words of the help text for an option whose value ConfigText::read accepts.
inline constexpr const char *kConfigValue = "JSON file, - for standard input, or the JSON itself";

} // namespace nsa::tools
