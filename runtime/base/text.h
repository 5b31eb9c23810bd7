// Reads the words of line-based texts (manifests and the headers of templates), and makes texts fit for a log,
// a terminal or a shell. Writes addresses.
// Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace nsa {

inline bool isSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

inline std::string_view trim(std::string_view text) {
  while (!text.empty() && isSpace(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && isSpace(text.back()))
    text.remove_suffix(1);
  return text;
}

// Removes the first word from `text`, with the white space around it, and returns the word. Returns "" when there is no
// word.
inline std::string_view takeWord(std::string_view &text) {
  text = trim(text);
  const auto length = static_cast<size_t>(std::find_if(text.begin(), text.end(), isSpace) - text.begin());
  const std::string_view word = text.substr(0, length);
  text = trim(text.substr(length));
  return word;
}

// Joins the texts of a range: "a, b".
template <typename Range, typename TextOf = std::identity>
std::string joined(const Range &range, std::string_view separator, TextOf textOf = {}) {
  std::string text;
  bool isFirst = true;
  for (const auto &each : range) {
    text.append(std::exchange(isFirst, false) ? "" : separator).append(std::invoke(textOf, each));
  }
  return text;
}

// Parses a decimal integer. Returns false unless the whole text is one integer.
template <typename Integer> bool parseInteger(std::string_view text, Integer &value) {
  auto [next, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && next == text.data() + text.size();
}

// Makes a text from a foreign file fit for a log or a terminal. Control characters may move the cursor, forge lines or
// change the terminal's settings, so `printable` writes them as escapes. The characters in `kept` stay as they are.
inline std::string printable(std::string_view text, std::string_view kept = "") {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // The characters U+0080 to U+009F are control characters too, and take two bytes.
    const bool isWide = byte == 0xc2 && i + 1 < text.size() && (static_cast<unsigned char>(text[i + 1]) & 0xe0) == 0x80;
    if ((byte >= 0x20 && byte != 0x7f && !isWide) || kept.find(text[i]) != std::string_view::npos)
      result += text[i];
    else if (byte == '\n')
      result += "\\n";
    else {
      const auto code = isWide ? static_cast<unsigned char>(text[++i]) : byte;
      result += {'\\', 'x', kDigits[code >> 4], kDigits[code & 15]};
    }
  }
  return result;
}

// An address as debuggers print it: "0x7f3a10000008".
inline std::string addressText(const void *address) {
  char text[2 * sizeof address + 1];
  const auto [end, error] = std::to_chars(text, text + sizeof text, reinterpret_cast<uintptr_t>(address), 16);
  return "0x" + std::string(text, end);
}

// Writes a text as one word of a POSIX shell, for a command that a message shows.
inline std::string shellWord(std::string_view text) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:@%+=,-";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos)
    return std::string(text);
  std::string word = "'";
  for (const char each : text)
    word += each == '\'' ? std::string("'\\''") : std::string(1, each);
  return word + "'";
}

} // namespace nsa
