// Checks whether a text is well-formed XML, as far as reports use XML: elements that nest and close, quoted attributes
// without repeats, known entities, and one root. It accepts no document type but <!DOCTYPE html>, no comments and no
// processing instructions.
// Thread-safety: pure functions.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace nsa::test {

class XmlCheck {
public:
  // "" when it is well-formed; otherwise the fault, with the text around it.
  static std::string problemOf(std::string_view text) { return XmlCheck(text).run(); }

private:
  explicit XmlCheck(std::string_view text) : text(text) {}

  std::string run() {
    if (text.starts_with("<!DOCTYPE html>\n"))
      at = 16;
    size_t roots = 0;
    while (at < text.size()) {
      if (text[at] == '<') {
        roots += names.empty() && !text.substr(at).starts_with("</");
        if (std::string problem = readTag(); !problem.empty())
          return problem + " near '" + std::string(text.substr(at, 60)) + "'";
        continue;
      }
      const size_t end = std::min(text.find('<', at), text.size());
      if (names.empty() && text.substr(at, end - at).find_first_not_of(" \n") != std::string_view::npos)
        return "text outside of the root";
      if (std::string problem = checkText(text.substr(at, end - at)); !problem.empty())
        return problem + " near '" + std::string(text.substr(at, 60)) + "'";
      at = end;
    }
    return !names.empty() ? "<" + names.back() + "> is not closed" : roots == 1 ? "" : "there must be one root";
  }

  std::string readTag() {
    const size_t end = text.find('>', at);
    if (end == std::string_view::npos)
      return "a tag does not end";
    std::string_view tag = text.substr(at + 1, end - at - 1);
    if (tag.starts_with('/')) {
      if (names.empty() || names.back() != tag.substr(1))
        return "closes what is not open";
      names.pop_back();
      at = end + 1;
      return "";
    }
    const bool isEmpty = tag.ends_with('/');
    if (isEmpty)
      tag.remove_suffix(1);
    const size_t space = std::min(tag.find(' '), tag.size());
    const std::string name(tag.substr(0, space));
    if (name.empty() || name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") != std::string::npos)
      return "no name of an element";
    if (std::string problem = checkAttributes(tag.substr(space)); !problem.empty())
      return problem;
    if (!isEmpty)
      names.push_back(name);
    at = end + 1;
    return "";
  }

  static std::string checkAttributes(std::string_view rest) {
    std::set<std::string_view> seen;
    while (!rest.empty()) {
      const size_t equals = rest.find("=\"");
      if (!rest.starts_with(' ') || equals == std::string_view::npos)
        return "an attribute without a quoted value";
      if (!seen.insert(rest.substr(1, equals - 1)).second)
        return "an attribute that stands there twice";
      rest.remove_prefix(equals + 2);
      const size_t quote = rest.find('"');
      if (quote == std::string_view::npos)
        return "a value that does not end";
      if (std::string problem = checkText(rest.substr(0, quote)); !problem.empty())
        return problem;
      rest.remove_prefix(quote + 1);
    }
    return "";
  }

  static std::string checkText(std::string_view part) {
    for (size_t i = 0; i < part.size(); ++i) {
      if (static_cast<unsigned char>(part[i]) < 0x20 && part[i] != '\n' && part[i] != '\t')
        return "a control character";
      if (part[i] == '<')
        return "a < within a value";
      if (part[i] != '&')
        continue;
      bool known = false;
      for (std::string_view entity : {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"})
        known = known || part.substr(i).starts_with(entity);
      if (!known)
        return "an unknown entity";
    }
    return "";
  }

  std::string_view text;
  size_t at = 0;
  std::vector<std::string> names;
};

} // namespace nsa::test
