// Parses JSON from files and command lines without throwing exceptions. The message of a syntax error says where in the
// text the error is. A repeated key is refused, because the JSON library would silently keep the last value.
// Thread-safety: json_input.h has only pure functions.
#pragma once

#include "runtime/base/status.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace nsa {

// Parses a text that must be a JSON object. Error messages call the text `what`, which is a file name or a text like
// "header of x.safetensors". `isCut` is set to true if the only fault of the text is that it ends too early.
Result<nlohmann::json> parseJsonObject(std::string_view text, const std::string &what, bool *isCut = nullptr);

} // namespace nsa
