// Words of the line-based texts: manifests and the headers of templates. Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <string_view>

namespace nsa {

inline bool isSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

inline std::string_view trim(std::string_view text) {
  while (!text.empty() && isSpace(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && isSpace(text.back()))
    text.remove_suffix(1);
  return text;
}

// Cuts the first word off the front of `text` and trims the rest; "" when there is none.
inline std::string_view takeWord(std::string_view &text) {
  text = trim(text);
  const auto length = static_cast<size_t>(std::find_if(text.begin(), text.end(), isSpace) - text.begin());
  const std::string_view word = text.substr(0, length);
  text = trim(text.substr(length));
  return word;
}

} // namespace nsa
