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
                           "declare it with fixed, let or choice in the header");
    position = end + 1;
  }
}

class Rendering {
public:
  explicit Rendering(const FindTemplateText &find) : find(find) {}

  Result<RenderedTemplate> run(std::string_view text, const std::string &file, const Values &values) {
    NSA_RETURN_IF_ERROR(addFile(text, file, values));
    return std::move(result);
  }

private:
  Status addFile(std::string_view text, const std::string &file, const Values &values) {
    TemplatePlace place{.file = file};
    while (!text.empty()) {
      const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
      text.remove_prefix(line.size());
      ++place.line;
      std::string_view words = trim(line);
      if (words.starts_with(kPartLine)) {
        words.remove_prefix(kPartLine.size());
        NSA_RETURN_IF_ERROR(addPart(words, place, values));
        continue;
      }
      Result<std::string> filled = fillHoles(line, place, values);
      if (!filled)
        return filled.status();
      result.text += *filled;
      result.places.push_back(place);
    }
    return Status::ok();
  }

  // `words` are the name of the part and its arguments, 'name=value'.
  Status addPart(std::string_view words, const TemplatePlace &place, const Values &outer) {
    if (place.file.starts_with(kPartFolder))
      return templateError(place, "a part may not have parts");
    const std::string path = std::string(kPartFolder).append(takeWord(words)) + ".mlir";
    const std::string *text = find ? find(path) : nullptr;
    if (!text)
      return templateError(place, "there is no part '" + path + "'");
    Values values = outer;
    while (!words.empty()) {
      const std::string_view word = takeWord(words);
      const size_t equals = word.find('=');
      if (equals == std::string_view::npos)
        return templateError(place, "an argument of a part is 'name=value', found '" + std::string(word) + "'");
      Result<std::string> value = fillHoles(word.substr(equals + 1), place, outer);
      if (!value)
        return value.status();
      values.set(std::string(word.substr(0, equals)), std::move(*value));
    }
    result.parts.insert(path);
    return addFile(*text, path, values);
  }

  const FindTemplateText &find;
  RenderedTemplate result;
};

} // namespace

Result<RenderedTemplate> renderTemplate(std::string_view text, const std::string &file, const Values &values,
                                        const FindTemplateText &find) {
  return Rendering(find).run(text, file, values);
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
