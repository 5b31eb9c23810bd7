// Colours for texts on a terminal.
// Thread-safety: terminal.h has only pure functions of the environment.
#pragma once

#include <string>

namespace nsa::tools {

enum class Colour { kRed, kYellow };

// Returns the text in bold and in the given colour if the file descriptor `to` is a terminal that can show it, and
// otherwise the text as it is. A variable NO_COLOR that is not empty switches colours off (https://no-color.org), and
// so does TERM=dumb.
std::string coloured(int to, Colour colour, const std::string &text);

} // namespace nsa::tools
