// Tokens: their kinds, their places, the comments between them, and what is no token.
#include "compiler/language/syntax/Lexer.h"
#include "compiler/language/syntax/Suggestion.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace nsa::language {
namespace {

using enum TokenKind;

struct Lexed {
  explicit Lexed(std::string text, Lexer::Comments comments = Lexer::Comments::kSkip)
      : file("x.tile", std::move(text)) {
    Lexer lexer(file, diagnostics, comments);
    for (Token token = lexer.next(); token.kind != kEnd; token = lexer.next())
      tokens.push_back(token);
  }

  std::vector<TokenKind> kinds() const {
    std::vector<TokenKind> found;
    for (const Token &token : tokens)
      found.push_back(token.kind);
    return found;
  }
  std::string textOf(size_t token) const {
    return std::string(file.text().substr(tokens[token].begin, tokens[token].end - tokens[token].begin));
  }

  SourceFile file;
  Diagnostics diagnostics;
  std::vector<Token> tokens;
};

TEST(Lexer, EveryWordAndMarkIsAToken) {
  int count = 0;
  for (int i = 0; i <= static_cast<int>(kAt); ++i) {
    const auto kind = static_cast<TokenKind>(i);
    const std::string spelling(spellingOf(kind));
    if (spelling.empty())
      continue;
    ++count;
    EXPECT_EQ(Lexed(" " + spelling + " ").kinds(), std::vector<TokenKind>{kind}) << spelling;
    EXPECT_EQ(isReserved(kind), spelling[0] >= 'a' && spelling[0] <= 'z') << spelling;
    EXPECT_FALSE(continuesLine(kind) && (isReserved(kind) || opens(kind) || closes(kind))) << spelling;
  }
  EXPECT_EQ(count, 18 + 31);
}

TEST(Lexer, TheLongestMarkIsTaken) {
  EXPECT_EQ(Lexed("a<=b").kinds(), (std::vector{kName, kLessEqual, kName}));
  EXPECT_EQ(Lexed("a= =b").kinds(), (std::vector{kName, kAssign, kAssign, kName}));
  EXPECT_EQ(Lexed("a->b").kinds(), (std::vector{kName, kArrow, kName}));
  EXPECT_EQ(Lexed("|||").kinds(), (std::vector{kOr, kBar}));
  EXPECT_EQ(Lexed("!=!").kinds(), (std::vector{kUnequal, kNot}));
}

TEST(Lexer, NamesMayHoldWords) {
  EXPECT_EQ(Lexed("letter _in load2 over_").kinds(), (std::vector{kName, kName, kName, kName}));
  EXPECT_EQ(Lexed("kernel fixed by").kinds(), (std::vector{kName, kName, kName}));
}

TEST(Lexer, NumbersEndBeforeDots) {
  const Lexed range("0..12 1.5..2e3");
  EXPECT_EQ(range.kinds(), (std::vector{kNumber, kDots, kNumber, kNumber, kDots, kNumber}));
  EXPECT_EQ(range.textOf(2), "12");
  EXPECT_EQ(range.textOf(3), "1.5");
  EXPECT_EQ(range.textOf(5), "2e3");
  EXPECT_EQ(Lexed("1e-5 1e+5").kinds(), (std::vector{kNumber, kNumber}));
}

TEST(Lexer, TokensKnowWhetherTheyBeginALine) {
  const Lexed lexed("a b\n// c\n\n  d // e\n\r\nf");
  ASSERT_EQ(lexed.kinds(), (std::vector{kName, kName, kName, kName}));
  EXPECT_TRUE(lexed.tokens[0].startsLine);
  EXPECT_FALSE(lexed.tokens[1].startsLine);
  EXPECT_TRUE(lexed.tokens[2].startsLine);
  EXPECT_TRUE(lexed.tokens[2].followsBlankLine);
  EXPECT_TRUE(lexed.tokens[3].followsBlankLine);
}

TEST(Lexer, CommentsAreKeptWhereTheyAreAskedFor) {
  const Lexed lexed("// a\nb // c\n\n//d", Lexer::Comments::kKeep);
  ASSERT_EQ(lexed.kinds(), (std::vector{kComment, kName, kComment, kComment}));
  EXPECT_EQ(lexed.textOf(0), "// a");
  EXPECT_TRUE(lexed.tokens[0].startsLine);
  EXPECT_FALSE(lexed.tokens[2].startsLine);
  EXPECT_TRUE(lexed.tokens[3].startsLine);
  EXPECT_TRUE(lexed.tokens[3].followsBlankLine);
}

TEST(Lexer, OfALineTheFirstErrorIsReported) {
  const Lexed lexed("a $ # \"\n'");
  EXPECT_EQ(lexed.kinds(), (std::vector{kName, kError, kError, kError, kError}));
  ASSERT_EQ(lexed.diagnostics.list().size(), 2U);
  EXPECT_EQ(lexed.diagnostics.list()[0].text, "unexpected '$'");
  EXPECT_EQ(lexed.diagnostics.list()[1].text, "unexpected '''");
}

TEST(Lexer, CharactersBeyondAsciiAreNoNames) {
  const Lexed lexed("let größe // größe");
  EXPECT_EQ(lexed.kinds(), (std::vector{kLet, kName, kError, kName}));
  EXPECT_EQ(lexed.diagnostics.toString(), "x.tile:1:7: error: unexpected 'öß'\nlet größe // größe\n      ^~\n");
}

TEST(Lexer, ALongRunOfSuchCharactersIsCutBetweenThem) {
  std::string run;
  for (int i = 0; i < 30; ++i)
    run += "ö";
  const Lexed lexed(run);
  EXPECT_EQ(lexed.diagnostics.list()[0].text, "unexpected 'öööööööö'");
}

TEST(Lexer, StopEndsTheText) {
  const SourceFile file("x.tile", "a b c");
  Diagnostics diagnostics;
  Lexer lexer(file, diagnostics);
  EXPECT_EQ(lexer.next().kind, kName);
  lexer.stop();
  EXPECT_EQ(lexer.next().kind, kEnd);
  EXPECT_EQ(lexer.next().kind, kEnd);
}

TEST(Suggestion, TheNearestWordIsMeant) {
  const std::vector<std::string_view> words = {"newest", "oldest", "position", "at"};
  EXPECT_EQ(nearestWord("newst", words), "newest");
  EXPECT_EQ(nearestWord("nweest", words), "newest"); // neighbours exchanged
  EXPECT_EQ(nearestWord("odlest", words), "oldest");
  EXPECT_EQ(nearestWord("positions", words), "position");
  EXPECT_EQ(nearestWord("row", words), "");
  EXPECT_EQ(nearestWord("", words), "");
  EXPECT_EQ(nearestWord(std::string(1000, 'a'), words), "");
}

} // namespace
} // namespace nsa::language
