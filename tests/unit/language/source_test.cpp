// The text of a file: places in it, and the texts that are refused before anything is read.
#include "compiler/language/syntax/Diagnostics.h"
#include "compiler/language/syntax/Source.h"

#include <gtest/gtest.h>

#include <string>

namespace nsa::language {
namespace {

TEST(Source, PlacesCountLinesAndCharacters) {
  const SourceFile file("x.tile", "a\nbö c\r\n\nd");
  EXPECT_EQ(file.position(0), (SourcePosition{1, 1}));
  EXPECT_EQ(file.position(1), (SourcePosition{1, 2}));
  EXPECT_EQ(file.position(2), (SourcePosition{2, 1}));
  EXPECT_EQ(file.position(6), (SourcePosition{2, 4})); // 'c': the letter before is of two bytes
  EXPECT_EQ(file.position(static_cast<uint32_t>(file.text().size())), (SourcePosition{4, 2}));
  EXPECT_EQ(file.lineCount(), 4U);
  EXPECT_EQ(file.line(2), "bö c");
  EXPECT_EQ(file.line(3), "");
  EXPECT_EQ(file.line(4), "d");
}

TEST(Source, AnEmptyTextHasOneLine) {
  const SourceFile file("x.tile", "");
  EXPECT_EQ(file.lineCount(), 1U);
  EXPECT_EQ(file.position(0), (SourcePosition{1, 1}));
  EXPECT_EQ(file.line(1), "");
}

TEST(Source, RangesAreJoined) {
  const SourceFile file("x.tile", "ab cd");
  EXPECT_EQ(joined({&file, 0, 2}, {&file, 3, 5}).text(), "ab cd");
  EXPECT_EQ(SourceRange{}.text(), "");
}

std::string refusalOf(std::string text) {
  const SourceFile file("x.tile", std::move(text));
  Diagnostics diagnostics;
  EXPECT_EQ(checkText(file, diagnostics), !diagnostics.hasErrors());
  return diagnostics.toString();
}

TEST(Source, TextsAreUtf8) {
  EXPECT_EQ(refusalOf("kernel x // größe, ∑, 𝛼\n\tlet\r\n"), "");
  EXPECT_EQ(refusalOf("a\n// \x9f\n"), "x.tile:2:4: error: not UTF-8 at byte 0x9f\n// ?\n   ^\n");
  // Cut off, too long a form, a surrogate, and beyond the last character.
  for (const std::string bytes :
       {"\xc3", "\xc3(", "\xc0\x80", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff"})
    EXPECT_TRUE(refusalOf("// " + bytes).starts_with("x.tile:1:4: error: not UTF-8 at byte 0x"));
}

TEST(Source, InvisibleCharactersAreRefused) {
  EXPECT_EQ(refusalOf(std::string("let a\0= 1", 9)),
            "x.tile:1:6: error: the invisible character 0x00 is not allowed\nlet a?= 1\n     ^\n");
  for (const std::string bytes : {"\x1b", "\x7f", "\x0b", "\xc2\x85", "\xef\xbb\xbf", "\xe2\x80\xae", "\xe2\x81\xa6"})
    EXPECT_TRUE(refusalOf(bytes).starts_with("x.tile:1:1: error: the invisible character 0x"));
}

TEST(Source, LinesEndWithALineFeed) {
  EXPECT_EQ(refusalOf("a\rb\n"), "x.tile:1:2: error: a carriage return without a line feed\na?b\n ^\n"
                                 "hint: a line ends with a line feed\n");
  EXPECT_TRUE(refusalOf("a\r").starts_with("x.tile:1:2: error: a carriage return"));
}

TEST(Source, TextsHaveALimit) {
  const SourceFile most("x.tile", std::string(kMostSourceBytes, ' '));
  EXPECT_FALSE(most.isCut());
  EXPECT_TRUE(refusalOf(std::string(kMostSourceBytes + 1, ' '))
                  .starts_with("x.tile:1:1: error: the file has more than 16 MiB"));
}

} // namespace
} // namespace nsa::language
