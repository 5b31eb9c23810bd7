// Colours on a terminal, and none anywhere else.
// Thread-safety: pure functions of the environment.
#pragma once

#include <string>

namespace nsa::tools {

enum class Colour { kRed, kYellow };

// The text in bold and in that colour where `to`, a file descriptor, is a terminal that can show it; else as it is.
// NO_COLOR, not empty, asks for none (https://no-color.org); so does TERM=dumb.
std::string coloured(int to, Colour colour, const std::string &text);

} // namespace nsa::tools
