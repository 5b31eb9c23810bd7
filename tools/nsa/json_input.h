// JSON from outside: parsed without exceptions, with the place of a syntax error, and with repeated keys
// refused (the JSON library would silently keep the last).
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/status.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace nsa::tools {

// `what` names the text in errors: a file name, "header of x.safetensors". Only an object is accepted.
Result<nlohmann::json> parseJsonObject(std::string_view text, const std::string &what);

} // namespace nsa::tools
