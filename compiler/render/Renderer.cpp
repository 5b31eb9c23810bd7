#include "compiler/render/Renderer.h"

#include "runtime/base/kernel_constants.h"
#include "runtime/base/text.h"

#include <algorithm>

namespace nsa {

namespace {

bool isNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Replaces the placeholders of one line.
Result<std::string> fillHoles(std::string_view line, const TemplatePlace &place, const Values &values) {
  std::string result;
  size_t position = 0;
  for (;;) {
    const size_t hole = line.find("${", position);
    result.append(line.substr(position, hole - position));
    if (hole == std::string_view::npos)
      return result;
    size_t end = hole + 2;
    while (end < line.size() && isNameCharacter(line[end]))
      ++end;
    const std::string_view name = line.substr(hole + 2, end - hole - 2);
    if (name.empty() || end == line.size() || line[end] != '}')
      return templateError(place, "a hole is '${name}'");
    int64_t number;
    if (const std::string *value = values.find(name))
      result.append(*value);
    else if (lookupKernelConstant(name, number))
      result.append(std::to_string(number));
    else
      return templateError(place, "unknown hole '${" + std::string(name) + "}'",
                           "declare it with fixed, const or choice in the header");
    position = end + 1;
  }
}

} // namespace

Result<std::string> renderTemplate(std::string_view text, const std::string &file, const Values &values) {
  std::string result;
  TemplatePlace place{.file = file};
  while (!text.empty()) {
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
    text.remove_prefix(line.size());
    ++place.line;
    Result<std::string> filled = fillHoles(line, place, values);
    if (!filled)
      return filled.status();
    result += *filled;
  }
  return result;
}

Result<Expression> bindKnownNames(const Expression &expression, const Values &values) {
  std::string_view source = expression.text();
  std::string text;
  for (size_t i = 0; i < source.size();) {
    size_t end = i;
    while (end < source.size() && isNameCharacter(source[end]))
      ++end;
    if (end == i) {
      text += source[i++];
      continue;
    }
    std::string_view word = source.substr(i, end - i);
    i = end;
    // Names of functions and numbers are words too, but not names of values.
    bool isName = std::find(expression.names().begin(), expression.names().end(), word) != expression.names().end();
    int64_t number;
    if (isName && values.lookup(word, number))
      text += number < 0 ? "(" + std::to_string(number) + ")" : std::to_string(number);
    else
      text += word;
  }
  return Expression::parse(text);
}

} // namespace nsa
