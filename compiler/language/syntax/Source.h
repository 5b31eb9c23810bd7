// The text of one file of the tile language, and places in it. A SourceFile owns its name and its text; ranges, tokens
// and nodes of the syntax point into it, so it stays where it is as long as one of them is used.
// Thread-safety: a SourceFile is immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nsa::language {

class Diagnostics;

// Offsets are of 32 bits, and a program is some kilobytes.
inline constexpr size_t kMostSourceBytes = size_t{16} << 20;

// Where a character stands: both numbers begin at 1. A column counts characters, not bytes.
struct SourcePosition {
  uint32_t line = 1, column = 1;

  bool operator==(const SourcePosition &) const = default;
};

// Reads the text of a regular file, and of a longer one a byte more than a program may have. nullopt: `trouble` says
// why it cannot be read.
std::optional<std::string> readSource(const std::filesystem::path &path, std::string &trouble);

class SourceFile {
public:
  // `name` is the file's name in messages. Text beyond kMostSourceBytes is cut off, and checkText says so.
  SourceFile(std::string name, std::string text);
  SourceFile(const SourceFile &) = delete;
  SourceFile &operator=(const SourceFile &) = delete;

  const std::string &name() const { return fileName; }
  std::string_view text() const { return content; }
  // Whether the text was longer than kMostSourceBytes.
  bool isCut() const { return wasCut; }

  // `offset` is at most the length of the text. Takes logarithmic time, and the length of the line.
  SourcePosition position(uint32_t offset) const;
  // The line with this number, without its end.
  std::string_view line(uint32_t number) const;
  uint32_t lineBegin(uint32_t number) const { return lineBegins[number - 1]; }
  uint32_t lineCount() const { return static_cast<uint32_t>(lineBegins.size()); }

private:
  std::string fileName;
  std::string content;
  std::vector<uint32_t> lineBegins; // offsets
  bool wasCut = false;
};

// The characters [begin, end) of a file. A range without a file is nowhere.
struct SourceRange {
  const SourceFile *file = nullptr;
  uint32_t begin = 0, end = 0;

  std::string_view text() const { return file ? file->text().substr(begin, end - begin) : std::string_view(); }
  SourcePosition position() const { return file->position(begin); }
  bool operator==(const SourceRange &) const = default;
};

// The text of a range in one line: the ends of lines are blanks, and comments are left out.
std::string inOneLine(const SourceRange &range);

// From the first character of `first` to the last one of `last`, which is in the same file and not before.
inline SourceRange joined(const SourceRange &first, const SourceRange &last) {
  return {first.file, first.begin, last.end};
}

// The character that a text begins with. `length` is its number of bytes, and 0 where they are no character of UTF-8.
struct Utf8Character {
  uint32_t length = 0;
  char32_t value = 0;
};
Utf8Character firstCharacter(std::string_view text);
// Whether a reader of a message or a listing could not see the character for what it is.
bool isInvisible(char32_t character);

// Whether the text is one that can be read: UTF-8, without invisible characters other than blanks, tabs and ends of
// lines. An end of a line is a line feed, with or without a carriage return in front of it. Reports the first breach.
bool checkText(const SourceFile &file, Diagnostics &diagnostics);

} // namespace nsa::language
