// How messages are written.
#include "compiler/language/syntax/Diagnostics.h"

#include <gtest/gtest.h>

#include <string>

namespace nsa::language {
namespace {

const SourceFile &program() {
  static const SourceFile file("x.tile", "let a = b + c\nlet d = e\n");
  return file;
}

SourceRange range(uint32_t begin, uint32_t end) { return {&program(), begin, end}; }

TEST(Diagnostics, AMessageHasItsLineAndACaret) {
  Diagnostics diagnostics;
  diagnostics.error(range(10, 11), "'+' of f32 and i32")
      .mark(range(8, 9))
      .mark(range(12, 13))
      .note(range(22, 23), "e is here")
      .hint("as f32");
  EXPECT_EQ(diagnostics.toString(), "x.tile:1:11: error: '+' of f32 and i32\n"
                                    "let a = b + c\n"
                                    "        ~ ^ ~\n"
                                    "x.tile:2:9: note: e is here\n"
                                    "let d = e\n"
                                    "        ^\n"
                                    "hint: as f32\n");
}

TEST(Diagnostics, WavesEndWithTheLine) {
  Diagnostics diagnostics;
  diagnostics.warning(range(8, 23), "over two lines");
  EXPECT_EQ(diagnostics.toString(), "x.tile:1:9: warning: over two lines\nlet a = b + c\n        ^~~~~\n");
}

TEST(Diagnostics, AMessageMayBeNowhere) {
  Diagnostics diagnostics;
  diagnostics.remark({}, "all is well").note("so it is");
  EXPECT_EQ(diagnostics.toString(), "remark: all is well\nnote: so it is\n");
}

TEST(Diagnostics, AnEmptyRangeHasACaret) {
  Diagnostics diagnostics;
  diagnostics.error(range(13, 13), "the end of the line");
  diagnostics.error(range(24, 24), "the end of the file");
  EXPECT_EQ(diagnostics.toString(), "x.tile:1:14: error: the end of the line\nlet a = b + c\n             ^\n"
                                    "x.tile:3:1: error: the end of the file\n\n^\n");
}

TEST(Diagnostics, OfALongLineThePartAtTheCaretIsShown) {
  const SourceFile file("x.tile", std::string(300, 'a') + "b" + std::string(300, 'c'));
  Diagnostics diagnostics;
  diagnostics.error({&file, 300, 302}, "here");
  EXPECT_EQ(diagnostics.toString(), "x.tile:1:301: error: here\n.. " + std::string(80, 'a') + "b" +
                                        std::string(79, 'c') + " ..\n" + std::string(83, ' ') + "^~\n");
}

TEST(Diagnostics, WarningsAreNoErrors) {
  Diagnostics diagnostics;
  diagnostics.warning(range(0, 1), "a");
  diagnostics.remark(range(0, 1), "b");
  EXPECT_FALSE(diagnostics.hasErrors());
  diagnostics.error(range(0, 1), "c");
  EXPECT_TRUE(diagnostics.hasErrors());
  EXPECT_EQ(diagnostics.errorCount(), 1U);
}

TEST(Diagnostics, BehindTheLastErrorNothingIsKept) {
  Diagnostics diagnostics(2);
  diagnostics.error(range(0, 1), "a");
  Diagnostic &second = diagnostics.error(range(0, 1), "b");
  EXPECT_TRUE(diagnostics.isFull());
  diagnostics.error(range(0, 1), "c").hint("left out");
  diagnostics.warning(range(0, 1), "d");
  second.hint("kept");
  ASSERT_EQ(diagnostics.list().size(), 2U);
  EXPECT_EQ(diagnostics.list()[1].hintText, "kept");
  EXPECT_EQ(diagnostics.errorCount(), 3U);
}

} // namespace
} // namespace nsa::language
