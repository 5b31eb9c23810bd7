// Parses JSON from outside without exceptions. A syntax error has its place. A repeated key is refused, because the
// JSON library would silently keep the last value.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/status.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace nsa::tools {

// `what` names the text in errors: a file name, or "header of x.safetensors". Only an object is accepted.
Result<nlohmann::json> parseJsonObject(std::string_view text, const std::string &what);

} // namespace nsa::tools
