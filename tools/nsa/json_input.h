// Parses JSON from outside without exceptions. The message of a syntax error says where in the text the error is. A
// repeated key is refused, because the JSON library would silently keep the last value.
// Thread-safety: json_input.h has only pure functions.
#pragma once

#include "runtime/base/status.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace nsa::tools {

// `what` names the text in errors: a file name, or "header of x.safetensors". Only an object is accepted. If a text is
// refused, `isCut` says whether it is the beginning of a JSON text, so that its end may have been lost.
Result<nlohmann::json> parseJsonObject(std::string_view text, const std::string &what, bool *isCut = nullptr);

} // namespace nsa::tools
