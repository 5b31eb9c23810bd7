// A second opinion on expressions: evaluates while it reads, in 128 bits, with no program in between.
// Thread-safety: pure function.
#pragma once

#include "compiler/render/Values.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace nsa::fuzz {

// Of a text that Expression::parse accepts, with a value for each of its names; nullopt: overflow or a bad divisor
// where it counts.
std::optional<int64_t> evaluateReference(std::string_view text, const Values &values);

} // namespace nsa::fuzz
