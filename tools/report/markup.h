// Makes XML text piece by piece. Elements are closed in the reverse order of their opening, and all text between tags
// is escaped.
// Thread-safety: one thread at a time may use a Markup.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nsa::report {

// Escapes a text for use as text or attribute value. Characters that XML cannot contain (control characters, broken
// UTF-8) become U+FFFD.
std::string escaped(std::string_view text);

// A number with three significant digits and no zeros at the end: "0.123", "12.3", "1.2e+07".
std::string numberText(double value);

class Markup {
public:
  using Attributes = std::initializer_list<std::pair<std::string_view, std::string>>;

  Markup &open(std::string_view name, const Attributes &attributes = {});
  Markup &close();
  // Adds an element without content.
  Markup &empty(std::string_view name, const Attributes &attributes = {});
  Markup &text(std::string_view text);
  // Adds an element that contains a text.
  Markup &element(std::string_view name, std::string_view text, const Attributes &attributes = {});
  // Adds text that is markup already, without escaping it.
  Markup &raw(std::string_view markup);

  // Closes every open element and returns the text.
  std::string take();

private:
  void begin(std::string_view name, const Attributes &attributes);

  std::string out;
  std::vector<std::string> names;
};

} // namespace nsa::report
