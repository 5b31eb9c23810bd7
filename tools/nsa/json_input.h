// Parses JSON from outside without exceptions. A syntax error has its place. A repeated key is refused, because the
// JSON library would silently keep the last value.
// Thread-safety: json_input.h has only pure functions.
#pragma once

#include "runtime/base/status.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace nsa::tools {

// `what` names the text in errors: a file name, or "header of x.safetensors". Only an object is accepted. Of a text
// that is refused `isCut` says whether it could have been JSON if it had gone on, so that its end may have been lost.
Result<nlohmann::json> parseJsonObject(std::string_view text, const std::string &what, bool *isCut = nullptr);

} // namespace nsa::tools
