#include "compiler/language/syntax/Source.h"

#include "compiler/language/syntax/Diagnostics.h"

#include <algorithm>
#include <fstream>

namespace nsa::language {

namespace {

constexpr char32_t kByteOrderMark = 0xFEFF;
// Marks of Unicode that show text in another order than it has, so that a comment could look like code.
constexpr char32_t kReordering[] = {0x202A, 0x202B, 0x202C, 0x202D, 0x202E, 0x2066, 0x2067, 0x2068, 0x2069};

bool isContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

std::string hexadecimal(uint32_t value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string digits;
  for (; value != 0 || digits.size() < 2; value >>= 4)
    digits.insert(digits.begin(), kDigits[value & 0xF]);
  return "0x" + digits;
}

} // namespace

std::string inOneLine(const SourceRange &range) {
  std::string text;
  std::string_view rest = range.text();
  while (!rest.empty()) {
    if (rest.starts_with("//")) {
      rest.remove_prefix(std::min(rest.find('\n'), rest.size()));
      continue;
    }
    if (std::string_view(" \t\r\n").find(rest.front()) == std::string_view::npos)
      text += rest.front();
    else if (!text.ends_with(' '))
      text += ' ';
    rest.remove_prefix(1);
  }
  return text;
}

Utf8Character firstCharacter(std::string_view text) {
  struct Form {
    unsigned char mask, lead;
    uint32_t length;
    char32_t least; // what is less has a shorter form
  };
  static constexpr Form kForms[] = {
      {0x80, 0x00, 1, 0}, {0xE0, 0xC0, 2, 0x80}, {0xF0, 0xE0, 3, 0x800}, {0xF8, 0xF0, 4, 0x10000}};
  const auto first = static_cast<unsigned char>(text[0]);
  for (const Form &form : kForms) {
    if ((first & form.mask) != form.lead)
      continue;
    if (text.size() < form.length)
      return {};
    char32_t value = first & ~static_cast<unsigned>(form.mask) & 0xFF;
    for (uint32_t i = 1; i < form.length; ++i) {
      if (!isContinuation(text[i]))
        return {};
      value = (value << 6) | (static_cast<unsigned char>(text[i]) & 0x3F);
    }
    const bool isSurrogate = value >= 0xD800 && value <= 0xDFFF;
    return value < form.least || value > 0x10FFFF || isSurrogate ? Utf8Character{} : Utf8Character{form.length, value};
  }
  return {};
}

bool isInvisible(char32_t character) {
  return character < ' ' || (character >= 0x7F && character < 0xA0) || character == kByteOrderMark ||
         std::ranges::find(kReordering, character) != std::end(kReordering);
}

std::optional<std::string> readSource(const std::filesystem::path &path, std::string &trouble) {
  std::error_code error;
  const bool isRegular = std::filesystem::is_regular_file(path, error);
  std::ifstream stream;
  if (isRegular)
    stream.open(path, std::ios::binary);
  if (!isRegular || !stream) {
    trouble = error       ? "cannot be read: " + error.message()
              : isRegular ? "cannot be read: permission or medium"
                          : "is no regular file";
    return std::nullopt;
  }
  std::string text(std::min<uintmax_t>(std::filesystem::file_size(path, error), kMostSourceBytes + 1), '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(stream.gcount()));
  return text;
}

SourceFile::SourceFile(std::string name, std::string text) : fileName(std::move(name)), content(std::move(text)) {
  wasCut = content.size() > kMostSourceBytes;
  if (wasCut)
    content.resize(kMostSourceBytes);
  lineBegins.push_back(0);
  for (size_t at = content.find('\n'); at != std::string::npos; at = content.find('\n', at + 1))
    lineBegins.push_back(static_cast<uint32_t>(at) + 1);
}

SourcePosition SourceFile::position(uint32_t offset) const {
  const auto past = std::ranges::upper_bound(lineBegins, offset);
  const auto line = static_cast<uint32_t>(past - lineBegins.begin());
  const std::string_view before = text().substr(lineBegin(line), offset - lineBegin(line));
  const auto characters = std::ranges::count_if(before, [](char c) { return !isContinuation(c); });
  return {line, static_cast<uint32_t>(characters) + 1};
}

std::string_view SourceFile::line(uint32_t number) const {
  const uint32_t begin = lineBegin(number);
  const std::string_view rest = text().substr(begin);
  std::string_view found = rest.substr(0, std::min(rest.find('\n'), rest.size()));
  if (found.ends_with('\r'))
    found.remove_suffix(1);
  return found;
}

bool checkText(const SourceFile &file, Diagnostics &diagnostics) {
  const std::string_view text = file.text();
  const auto refuse = [&](size_t at, size_t length, std::string what) -> Diagnostic & {
    const auto begin = static_cast<uint32_t>(at);
    return diagnostics.error({&file, begin, begin + static_cast<uint32_t>(length)}, std::move(what));
  };
  if (file.isCut()) {
    refuse(0, 0, "the file has more than " + std::to_string(kMostSourceBytes >> 20) + " MiB");
    return false;
  }
  for (size_t at = 0; at < text.size();) {
    const Utf8Character character = firstCharacter(text.substr(at));
    if (character.length == 0) {
      refuse(at, 1, "not UTF-8 at byte " + hexadecimal(static_cast<unsigned char>(text[at])));
      return false;
    }
    if (character.value == '\r' && !text.substr(at).starts_with("\r\n")) {
      refuse(at, 1, "a carriage return without a line feed").hint("a line ends with a line feed");
      return false;
    }
    const bool isSpace = character.value == '\n' || character.value == '\r' || character.value == '\t';
    if (!isSpace && isInvisible(character.value)) {
      refuse(at, character.length, "the invisible character " + hexadecimal(character.value) + " is not allowed");
      return false;
    }
    at += character.length;
  }
  return true;
}

} // namespace nsa::language
