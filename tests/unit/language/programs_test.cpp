// The programs of the repository: they are read without a message and stand in the one layout, and a layout says the
// same as the text that it was made of.
#include "compiler/language/syntax/Format.h"
#include "compiler/language/syntax/Lexer.h"
#include "tests/unit/language/parsed.h"
#include "tests/unit/language/syntax_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace nsa::language {
namespace {

namespace files = std::filesystem;

struct Program {
  std::string name, text;
};

std::vector<Program> programs() {
  std::vector<Program> found;
  for (const std::string folder : {"templates/tile", "templates/tile/library"})
    for (const auto &entry : files::directory_iterator(files::path(NSA_TEST_PROJECT) / folder)) {
      if (entry.path().extension() != ".tile")
        continue;
      std::ifstream stream(entry.path(), std::ios::binary);
      found.push_back({folder + "/" + entry.path().filename().string(),
                       {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()}});
    }
  std::ranges::sort(found, {}, &Program::name);
  return found;
}

std::string treeOf(const Program &program) {
  const Parsed parsed(program.text, program.name);
  EXPECT_EQ(parsed.messages(), "");
  EXPECT_TRUE(parsed.tree->kernel || parsed.tree->library);
  return syntaxText(*parsed.tree);
}

std::string layoutOf(const Program &program) {
  const SourceFile file(program.name, program.text);
  Diagnostics diagnostics;
  return format(file, diagnostics).value_or(diagnostics.toString());
}

// The same tokens, as badly laid out as the rules of lines allow: no indentation, no blanks that are not needed, and a
// new line inside of brackets and behind everything that something must follow.
std::string squeezed(const Program &program) {
  const SourceFile file(program.name, program.text);
  Diagnostics diagnostics;
  Lexer lexer(file, diagnostics, Lexer::Comments::kKeep);
  std::string out;
  int brackets = 0;
  Token last;
  for (Token token = lexer.next(); token.kind != TokenKind::kEnd; last = token, token = lexer.next()) {
    const bool isInside = brackets > 0 || continuesLine(last.kind);
    if (token.startsLine && !isInside)
      out += "\n";
    else if (isInside && !out.empty())
      out += "\n\n";
    else if (!closes(token.kind))
      out += " ";
    out += file.text().substr(token.begin, token.end - token.begin);
    if (token.kind == TokenKind::kOpenParenthesis || token.kind == TokenKind::kOpenBracket)
      ++brackets;
    if (token.kind == TokenKind::kCloseParenthesis || token.kind == TokenKind::kCloseBracket)
      --brackets;
  }
  return out + "\n";
}

class Programs : public testing::TestWithParam<Program> {};

TEST_P(Programs, StandInTheirLayout) { EXPECT_EQ(layoutOf(GetParam()), GetParam().text); }

TEST_P(Programs, AreNotWiderThanALine) {
  const SourceFile file(GetParam().name, GetParam().text);
  for (uint32_t line = 1; line <= file.lineCount(); ++line)
    EXPECT_LE(file.line(line).size(), kLineWidth) << "line " << line;
}

TEST_P(Programs, SayTheSameInAnotherLayout) {
  const Program other{GetParam().name, squeezed(GetParam())};
  EXPECT_NE(other.text, GetParam().text);
  EXPECT_EQ(treeOf(other), treeOf(GetParam()));
  const Program again{GetParam().name, layoutOf(other)};
  EXPECT_EQ(treeOf(again), treeOf(GetParam()));
  EXPECT_EQ(layoutOf(again), again.text);
}

INSTANTIATE_TEST_SUITE_P(, Programs, testing::ValuesIn(programs()), [](const testing::TestParamInfo<Program> &info) {
  std::string name = files::path(info.param.name).stem().string();
  if (info.param.name.find("/library/") != std::string::npos)
    name += "_library";
  return name;
});

TEST(ProgramFiles, AllAreFound) { EXPECT_GE(programs().size(), 25U); }

// Cut off anywhere, a program is read or refused, and nothing else.
TEST(ProgramFiles, APartOfAProgramIsReadOrRefused) {
  for (const Program &program : programs())
    for (size_t end = 0; end < program.text.size(); end += 31) {
      const Parsed part(program.text.substr(0, end));
      ASSERT_TRUE(part.tree);
      EXPECT_TRUE(part.diagnostics.hasErrors() || part.tree->kernel || part.tree->library)
          << program.name << " to " << end;
    }
}

} // namespace
} // namespace nsa::language
