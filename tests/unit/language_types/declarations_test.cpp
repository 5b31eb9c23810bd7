// Declarations: constants of one problem, axes, tensors, and what is wrong with them.
#include "tests/unit/language_types/language_program.h"

#include <gtest/gtest.h>

namespace nsa::language {
namespace {

TEST(LanguageDeclarations, ConstantsFollowTheProblem) {
  LanguageProgram program("kernel x serves dense, window\n"
                          "fixed   dtype, width\n"
                          "fixed   stride when op == window\n"
                          "const   windowed = op == window, step = windowed ? stride : 1\n"
                          "const   half = 16 / (windowed ? 2 : 1) - -1\n"
                          "choice  tile = 16 | 32\n"
                          "axis    row = tile, column = roundup(width, 16) + step + half, d = width\n"
                          "tensor  q[time; d], out[time; d]\n"
                          "threads 32 * (tile / 16)\n"
                          "store out[iota(row) below 9] = load q[iota(row) below 9]\n");
  program.give("width", "72");
  program.give("tile", "32");
  program.give("op", "dense");
  const Program *typed = program.type();
  ASSERT_TRUE(typed) << program.messages();
  EXPECT_EQ(program.messages(), "");
  ASSERT_EQ(typed->axes.size(), 3u);
  EXPECT_EQ(typed->axes[0].extent, 32);
  EXPECT_EQ(typed->axes[1].extent, 80 + 1 + 17);
  // Rows of a tensor are padded to what a product takes at once.
  EXPECT_EQ(typed->axes[2].count, 72);
  EXPECT_EQ(typed->axes[2].extent, 80);
  EXPECT_EQ(typed->warps, 2);
}

std::string mistakeOf(std::string declaration, std::string_view name = "", std::string_view value = "") {
  LanguageProgram program("kernel x\n" + std::move(declaration) + "\n");
  if (!name.empty())
    program.give(std::string(name), std::string(value));
  EXPECT_FALSE(program.type());
  return program.messages();
}

TEST(LanguageDeclarations, AnAxisIsDeclaredOnce) {
  EXPECT_EQ(mistakeOf("axis key = 64\naxis row = 16, key = 32"), "x.tile:3:16: error: axis 'key' is declared twice\n"
                                                                 "axis row = 16, key = 32\n"
                                                                 "               ^~~\n"
                                                                 "x.tile:2:6: note: first here, as 64\n"
                                                                 "axis key = 64\n"
                                                                 "     ^~~\n"
                                                                 "hint: 'key' cannot be 64 and 32\n");
}

TEST(LanguageDeclarations, AnExtentIsAConstant) {
  EXPECT_EQ(mistakeOf("scalar rows: i32\naxis   row = rows"),
            "x.tile:3:14: error: extent of 'row' is no constant: it depends on the call ('rows')\n"
            "axis   row = rows\n"
            "             ^~~~\n"
            "hint: an axis is compiled in; take a choice and walk with 'for .. by row'\n");
  EXPECT_EQ(mistakeOf("axis row = 8 / 0"), "x.tile:2:12: error: extent of 'row' is no constant\n"
                                           "axis row = 8 / 0\n"
                                           "           ^~~~~\n"
                                           "x.tile:2:12: note: division by zero\n"
                                           "axis row = 8 / 0\n"
                                           "           ^~~~~\n");
  EXPECT_EQ(mistakeOf("axis row = 0"), "x.tile:2:12: error: extent of 'row' is 0, must be 1 to 1048576\n"
                                       "axis row = 0\n"
                                       "           ^\n");
}

TEST(LanguageDeclarations, AValueOfTheProblemIsGiven) {
  EXPECT_EQ(mistakeOf("fixed width\nconst twice = 2 * width"), "x.tile:3:19: error: 'width' is no constant\n"
                                                               "const twice = 2 * width\n"
                                                               "                  ^~~~~\n");
  EXPECT_EQ(mistakeOf("const twice = op + 1", "op", "window"),
            "x.tile:2:15: error: words can only be compared with == and !=\n"
            "const twice = op + 1\n"
            "              ^~~~~~\n"
            "hint: constants are made of integers, names, operators, min, max, ceildiv and roundup\n");
}

TEST(LanguageDeclarations, WordsOfTheLanguageAreNotDeclared) {
  EXPECT_EQ(mistakeOf("const io = 1"), "x.tile:2:7: error: 'io' is a word of the language, and cannot be declared\n"
                                       "const io = 1\n"
                                       "      ^~\n");
  EXPECT_EQ(mistakeOf("fn max(x) { return x }"), "x.tile:2:4: error: 'max' is a function already\n"
                                                 "fn max(x) { return x }\n"
                                                 "   ^~~\n");
}

TEST(LanguageDeclarations, AnImportExists) {
  EXPECT_EQ(mistakeOf("import nothing"), "x.tile:2:8: error: there is no library 'nothing'\n"
                                         "import nothing\n"
                                         "       ^~~~~~~\n");
}

TEST(LanguageDeclarations, ALibraryComesBehindTheKernelWhereItIsUsed) {
  LanguageProgram program("kernel x\n"
                          "import lib\n"
                          "tensor out[n]: i32\n"
                          "scalar rows: i32\n"
                          "store out[rows] = twice(far)\n");
  program.add("lib", "library lib\n"
                     "tensor table[n]: i32, unused[n]: i32\n"
                     "scalar far, near: i32\n"
                     "fn twice(x) { return x + load table[x] }\n");
  const Program *typed = program.type();
  ASSERT_TRUE(typed) << program.messages();
  std::string used;
  for (const Tensor &tensor : typed->tensors)
    used += tensor.isUsed ? std::string(tensor.name) + " " : "";
  for (const ScalarArgument &scalar : typed->scalars)
    used += scalar.isUsed ? std::string(scalar.name) + " " : "";
  EXPECT_EQ(used, "out table rows far ");
}

} // namespace
} // namespace nsa::language
