// Finds the known name that a user may have meant by a mistyped name.
// Thread-safety: nearest_name.h has only pure functions.
#pragma once

#include <span>
#include <string_view>

namespace nsa::tools {

// Returns a known name that begins with `name`, if there is one and `name` has at least three characters. Otherwise
// returns the known name with the smallest edit distance to `name`, if the distance is small enough. Otherwise returns
// the first known name that contains the characters of `name` in the same order, such as "--config" for "--cfg".
// Returns "" if all three searches fail.
std::string_view nearestName(std::string_view name, std::span<const std::string_view> known);

} // namespace nsa::tools
