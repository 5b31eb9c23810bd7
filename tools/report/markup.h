// XML text made piece by piece: elements close themselves in order, everything between tags is escaped.
// Thread-safety: one thread at a time.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nsa::report {

// Fit for text and for attribute values. What XML cannot hold (control characters, broken UTF-8) becomes U+FFFD.
std::string escaped(std::string_view text);

// "0.123", "12.3", "1.2e+07": three significant digits, no zeros behind.
std::string numberText(double value);

class Markup {
public:
  using Attributes = std::initializer_list<std::pair<std::string_view, std::string>>;

  Markup &open(std::string_view name, const Attributes &attributes = {});
  Markup &close();
  // An element without content.
  Markup &empty(std::string_view name, const Attributes &attributes = {});
  Markup &text(std::string_view text);
  // An element that holds a text.
  Markup &element(std::string_view name, std::string_view text, const Attributes &attributes = {});
  // What is markup already.
  Markup &raw(std::string_view markup);

  // With every element closed.
  std::string take();

private:
  void begin(std::string_view name, const Attributes &attributes);

  std::string out;
  std::vector<std::string> names;
};

} // namespace nsa::report
