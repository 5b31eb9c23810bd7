// Finds the known name that a user may have meant by a mistyped name.
// Thread-safety: nearest_name.h has only pure functions.
#pragma once

#include <span>
#include <string_view>

namespace nsa::tools {

// The known name that begins with these characters. If no known name begins with these characters, the known name that
// takes the fewest edits. If even the nearest name is too different, the first known name that the characters
// abbreviate. The result is "" when the characters abbreviate no known name.
std::string_view nearestName(std::string_view name, std::span<const std::string_view> known);

} // namespace nsa::tools
