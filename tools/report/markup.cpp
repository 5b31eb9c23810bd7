#include "tools/report/markup.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace nsa::report {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd"; // U+FFFD
constexpr std::pair<char, std::string_view> kEscapes[] = {
    {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};

// Bytes of the well-formed UTF-8 sequence at the text's begin that XML may hold; 0 where there is none.
size_t characterAt(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80)
    return first >= 0x20 || first == '\t' || first == '\n' || first == '\r' ? 1 : 0;
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size)
    return 0;
  uint32_t code = first & (0xff >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80)
      return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool isSurrogate = code >= 0xd800 && code <= 0xdfff;
  const bool isNone = code == 0xfffe || code == 0xffff;
  return code < kLeast[size] || code > 0x10ffff || isSurrogate || isNone ? 0 : size;
}

} // namespace

std::string escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t size = characterAt(text);
    const auto *escape = std::ranges::find(kEscapes, text[0], &std::pair<char, std::string_view>::first);
    result += escape != std::end(kEscapes) ? escape->second : size ? text.substr(0, size) : kReplacement;
    text.remove_prefix(size ? size : 1);
  }
  return result;
}

std::string numberText(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

void Markup::begin(std::string_view name, const Attributes &attributes) {
  out.append("<").append(name);
  for (const auto &[attribute, value] : attributes)
    out.append(" ").append(attribute).append("=\"").append(escaped(value)).append("\"");
}

Markup &Markup::open(std::string_view name, const Attributes &attributes) {
  begin(name, attributes);
  out += ">";
  names.emplace_back(name);
  return *this;
}

Markup &Markup::close() {
  out.append("</").append(names.back()).append(">\n");
  names.pop_back();
  return *this;
}

Markup &Markup::empty(std::string_view name, const Attributes &attributes) {
  begin(name, attributes);
  out += "/>\n";
  return *this;
}

Markup &Markup::text(std::string_view text) {
  out += escaped(text);
  return *this;
}

Markup &Markup::element(std::string_view name, std::string_view content, const Attributes &attributes) {
  return open(name, attributes).text(content).close();
}

Markup &Markup::raw(std::string_view markup) {
  out += markup;
  return *this;
}

std::string Markup::take() {
  while (!names.empty())
    close();
  return std::move(out);
}

} // namespace nsa::report
