#include "compiler/render/Renderer.h"

#include "compiler/render/TemplateHeader.h"
#include "runtime/base/kernel_constants.h"

#include <algorithm>

namespace nsa {

namespace {

bool isNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

} // namespace

Result<std::string> renderTemplate(std::string_view text, const std::string &file, const Values &values) {
  std::string result;
  result.reserve(text.size() + text.size() / 8);
  size_t position = 0;
  auto fail = [&](std::string rule, std::string hint = "") {
    int line = 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(position), '\n'));
    return templateError({file, line}, std::move(rule), std::move(hint));
  };
  for (;;) {
    size_t hole = text.find("${", position);
    result.append(text.substr(position, hole - position));
    if (hole == std::string_view::npos)
      return result;
    position = hole;
    size_t end = hole + 2;
    while (end < text.size() && isNameCharacter(text[end]))
      ++end;
    std::string_view name = text.substr(hole + 2, end - hole - 2);
    if (name.empty() || end == text.size() || text[end] != '}')
      return fail("a hole is '${name}'");
    int64_t number;
    if (const std::string *value = values.find(name))
      result.append(*value);
    else if (lookupKernelConstant(name, number))
      result.append(std::to_string(number));
    else
      return fail("unknown hole '${" + std::string(name) + "}'", "declare it with fixed, let or choice in the header");
    position = end + 1;
  }
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
