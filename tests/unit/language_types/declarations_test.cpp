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
                          "const   half = 16 / (windowed ? 2 : 1) - -abs(windowed - 1)\n"
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
            "hint: constants are made of integers, names, operators, abs, min, max, ceildiv and roundup\n");
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

TEST(LanguageDeclarations, LibrariesDoNotImportEachOther) {
  LanguageProgram program("kernel x\nimport one\n");
  program.add("one", "library one\nimport two\n");
  program.add("two", "library two\nimport one\n");
  EXPECT_FALSE(program.type());
  EXPECT_EQ(program.messages(), "two.tile:2:8: error: library 'one' imports itself\n"
                                "import one\n"
                                "       ^~~\n"
                                "x.tile:2:8: note: imported here\n"
                                "import one\n"
                                "       ^~~\n"
                                "one.tile:2:8: note: imported here\n"
                                "import two\n"
                                "       ^~~\n");
}

TEST(LanguageDeclarations, ALibraryIsThereAndHasItsName) {
  LanguageProgram program("kernel x\nimport one, two\n");
  program.add("two", "library three\n");
  EXPECT_FALSE(program.type());
  EXPECT_EQ(program.messages(), "x.tile:2:8: error: there is no library 'one'\n"
                                "import one, two\n"
                                "       ^~~\n"
                                "x.tile:2:13: error: the file of library 'two' is library 'three'\n"
                                "import one, two\n"
                                "            ^~~\n"
                                "two.tile:1:9: note: it says so here\n"
                                "library three\n"
                                "        ^~~~~\n");
}

TEST(LanguageDeclarations, OneImportIsEnough) {
  LanguageProgram program("kernel x\nimport one, two\naxis row = 16\n"
                          "tensor y[time]: f32\nstore y[iota(row) below 9] = twice(one)\n");
  program.add("one", "library one\nconst one = 1\n");
  program.add("two", "library two\nimport one\nfn twice(x) { return x + one }\n");
  EXPECT_TRUE(program.type()) << program.messages();
}

TEST(LanguageDeclarations, AConstantFitsIn64Bits) {
  EXPECT_EQ(mistakeOf("axis row = 4611686018427387904 * 4"),
            "x.tile:2:12: error: extent of 'row' is no constant\n"
            "axis row = 4611686018427387904 * 4\n"
            "           ^~~~~~~~~~~~~~~~~~~~~~~\n"
            "x.tile:2:32: note: a constant has 64 bits, and this one needs more\n"
            "axis row = 4611686018427387904 * 4\n"
            "                               ^\n");
}

TEST(LanguageDeclarations, MistakesOfConstants) {
  const auto message = [](const std::string &value) {
    const std::string all = mistakeOf("const a = " + value);
    return all.substr(0, all.find('\n'));
  };
  EXPECT_EQ(message("abs(-9223372036854775807 - 1)"),
            "x.tile:2:11: error: a constant has 64 bits, and this one needs more");
  EXPECT_EQ(message("-(-9223372036854775807 - 1)"),
            "x.tile:2:11: error: a constant has 64 bits, and this one needs more");
  EXPECT_EQ(message("1.5"), "x.tile:2:11: error: a constant is an integer");
  EXPECT_EQ(message("(1, 2)"), "x.tile:2:11: error: this is no constant");
  EXPECT_EQ(message("abs(1, 2)"), "x.tile:2:11: error: this is no constant");
  EXPECT_EQ(message("relu + 1"), "x.tile:2:11: error: words can only be compared with == and !=");
  EXPECT_EQ(message("-relu"), "x.tile:2:12: error: 'relu' is a word, and can only be compared");
  EXPECT_EQ(message("roundup(3, 0)"), "x.tile:2:11: error: roundup wants a positive divisor");
  EXPECT_EQ(message("none"), "x.tile:2:11: error: 'none' is no constant");
}

TEST(LanguageDeclarations, MistakesOfTypes) {
  EXPECT_EQ(mistakeOf("scalar a: i64"), "x.tile:2:11: error: a scalar of the call is i32 or f32\n"
                                        "scalar a: i64\n"
                                        "          ^~~\n");
  EXPECT_EQ(mistakeOf("record A { a: i32[row] }"), "x.tile:2:15: error: a field is a number or a bool\n"
                                                   "record A { a: i32[row] }\n"
                                                   "              ^~~~~~~~\n");
  EXPECT_EQ(mistakeOf("tensor a[b]: f16"), "x.tile:2:14: error: unknown element type 'f16'\n"
                                           "tensor a[b]: f16\n"
                                           "             ^~~\n"
                                           "hint: did you mean 'fp16'?\n");
  std::string axes = "axis a0 = 1";
  for (int i = 1; i < 33; ++i)
    axes += ", a" + std::to_string(i) + " = 1";
  EXPECT_EQ(mistakeOf(axes).substr(0, 53), "x.tile:2:284: error: a program has at most 32 axes\n..");
}

TEST(LanguageDeclarations, MistakesOfTensors) {
  const auto message = [](const std::string &declaration) {
    const std::string all = mistakeOf(declaration);
    return all.substr(0, all.find('\n'));
  };
  EXPECT_EQ(message("tensor a[b]: i64"),
            "x.tile:2:14: error: a tensor holds io, f32, i32, bf16, fp16, gradients or records, and no i64");
  EXPECT_EQ(message("record R { a: i32, b: f32 }\ntensor a[b]: R"),
            "x.tile:3:14: error: records in memory have fields of i32, and 'b' of 'R' is f32");
  EXPECT_EQ(message("tensor a[b, c, d, e, f]"), "x.tile:2:8: error: a tensor has 1 to 4 coordinates, this one has 5");
  EXPECT_EQ(message("tensor a[]"), "x.tile:2:8: error: a tensor has 1 to 4 coordinates, this one has 0");
  EXPECT_EQ(message("record R { a: i32 }\ntensor a[b, c, d, e]: R"),
            "x.tile:3:8: error: a tensor has 1 to 3 coordinates, this one has 4");
  EXPECT_EQ(message("tensor a[b; c: 0]"), "x.tile:2:16: error: rows of 'a' have 0 columns, must be 1 to 2147483647");
  EXPECT_EQ(message("tensor a[b; c: 8] paged(16)"), "x.tile:2:25: error: a page of 16 rows");
  EXPECT_EQ(message("tensor a[b, c; d: 8] paged(-1)"), "x.tile:2:28: error: a page of -1 rows");
}

TEST(LanguageDeclarations, AKernelIsWanted) {
  LanguageProgram program("library x\nfn twice(x) { return 2 * x }\n");
  EXPECT_EQ(program.type(), nullptr);
  EXPECT_EQ(program.messages(),
            "x.tile:1:1: error: this file is no kernel\nlibrary x\n^\nhint: it begins with: kernel NAME\n");
}

} // namespace
} // namespace nsa::language
