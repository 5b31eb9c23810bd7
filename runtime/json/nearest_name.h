// Finds the known name that a user may have meant by a mistyped name.
// Thread-safety: nearest_name.h has only pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace nsa {

// nearestName makes three searches, and returns the name that the first successful search finds. The first search looks
// for a known name that begins with `name`, if `name` has at least three characters. The second search looks for the
// known name with the smallest edit distance to `name`, which must be at most 2, or at most half the length of `name`
// if that is more. The third search looks for the first known name that contains the characters of `name` in the same
// order, such as "--config" for "--cfg". nearestName returns "" if no search finds a name.
std::string_view nearestName(std::string_view name, std::span<const std::string_view> known);
// The hint of an error: "did you mean NAME?", or "" if nearestName finds no name.
std::string nearestHint(std::string_view name, std::span<const std::string_view> known);

} // namespace nsa
