// Finds the known name that a user may have meant by a mistyped name.
// Thread-safety: nearest_name.h has only pure functions.
#pragma once

#include <span>
#include <string_view>

namespace nsa::tools {

// First the known name that begins with the mistyped characters is looked for. If no known name begins with the
// mistyped characters, the result is the known name that takes the fewest edits. If even the nearest known name is too
// different, the result is the first known name that the mistyped characters abbreviate. The result is "" when the
// mistyped characters abbreviate no known name.
std::string_view nearestName(std::string_view name, std::span<const std::string_view> known);

} // namespace nsa::tools
