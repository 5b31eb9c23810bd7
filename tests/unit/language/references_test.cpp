// What is said about the clause `reference` of a program, word for word.
#include "compiler/language/syntax/References.h"
#include "tests/unit/language/parsed.h"

#include <gtest/gtest.h>

namespace nsa::language {
namespace {

constexpr const char *kTensors = "tensor x[row; c], y[row; c]: f32 optional\nscalar rows: i32\n";

// What is said about a kernel `x` that has `clause`, where the text of `plain` lies beside it ("": nothing does).
std::string said(const std::string &clause, const std::string &plain = "", const std::string &declared = kTensors) {
  Parsed kernel("kernel x\n" + clause + "\nchoice query_tile = 16 | 32, warps = 1\n" + declared);
  const Parsed program(plain, "plain.tile");
  checkReference(
      *kernel.tree,
      [&](std::string_view name) { return name == "plain" && !plain.empty() ? program.tree.get() : nullptr; },
      kernel.diagnostics);
  return kernel.messages();
}

std::string plainWith(const std::string &declared) { return "kernel plain\n" + declared; }

TEST(References, AreRight) {
  EXPECT_EQ(said(""), "");
  EXPECT_EQ(said("reference query_tile = 32, warps = 1"), "");
  EXPECT_EQ(said("reference plain", plainWith(kTensors)), "");
  // The order is free, and so are labels, extents and other declarations.
  EXPECT_EQ(said("reference plain", plainWith("fixed n\nscalar rows: i32\ntensor y[b; a: n]: f32 optional\n"
                                              "tensor x[b: rows; a: n]: io\nreference n = 1\nchoice n = 1\n")),
            "");
}

TEST(References, StandOnce) {
  EXPECT_EQ(said("reference plain\nreference warps = 1"), "x.tile:3:1: error: 'reference' stands twice\n"
                                                          "reference warps = 1\n"
                                                          "^~~~~~~~~~~~~~~~~~~\n"
                                                          "x.tile:2:1: note: it stands here\n"
                                                          "reference plain\n"
                                                          "^~~~~~~~~~~~~~~\n");
}

TEST(References, FixWhatIsAChoice) {
  EXPECT_EQ(said("reference query_tilt = 16"), "x.tile:2:11: error: the program 'x' has no choice 'query_tilt'\n"
                                               "reference query_tilt = 16\n"
                                               "          ^~~~~~~~~~\n"
                                               "hint: did you mean 'query_tile'?\n");
  EXPECT_EQ(said("reference warps = 1, query_tile = 48"), "x.tile:2:35: error: the choice 'query_tile' is never 48\n"
                                                          "reference warps = 1, query_tile = 48\n"
                                                          "                                  ^~\n"
                                                          "x.tile:3:8: note: it is one of 16, 32\n"
                                                          "choice query_tile = 16 | 32, warps = 1\n"
                                                          "       ^~~~~~~~~~\n");
  EXPECT_EQ(said("reference warps = 1, warps = 1"), "x.tile:2:22: error: 'warps' is fixed twice\n"
                                                    "reference warps = 1, warps = 1\n"
                                                    "                     ^~~~~\n"
                                                    "x.tile:2:11: note: it is fixed here\n"
                                                    "reference warps = 1, warps = 1\n"
                                                    "          ^~~~~\n");
}

TEST(References, NameAProgramBesideTheFile) {
  EXPECT_EQ(said("reference x"), "x.tile:2:11: error: a program cannot be its own reference\n"
                                 "reference x\n"
                                 "          ^\n"
                                 "hint: fix choices of this program: reference CHOICE = NUMBER\n");
  EXPECT_EQ(said("reference plain"), "x.tile:2:11: error: there is no program 'plain'\n"
                                     "reference plain\n"
                                     "          ^~~~~\n"
                                     "hint: save it as plain.tile in the folder of this file\n");
  EXPECT_EQ(said("reference plain", "kernel simple\n"),
            "x.tile:2:11: error: the file of the program 'plain' is kernel 'simple'\n"
            "reference plain\n"
            "          ^~~~~\n"
            "plain.tile:1:8: note: it says so here\n"
            "kernel simple\n"
            "       ^~~~~~\n");
  EXPECT_EQ(said("reference plain", "library plain\n"),
            "x.tile:2:11: error: the file of the program 'plain' is library 'plain'\n"
            "reference plain\n"
            "          ^~~~~\n"
            "plain.tile:1:9: note: it says so here\n"
            "library plain\n"
            "        ^~~~~\n");
  Parsed text("kernel x\nreference plain\n", "program");
  checkReference(*text.tree, nullptr, text.diagnostics);
  EXPECT_EQ(text.messages(), "program:2:11: error: a text that is no file has no program 'plain' beside it\n"
                             "reference plain\n"
                             "          ^~~~~\n"
                             "hint: fix choices of this program: reference CHOICE = NUMBER\n");
}

// So references make no circle.
TEST(References, NameNoFurtherProgram) {
  for (const std::string further : {"x", "another"})
    EXPECT_EQ(said("reference plain", plainWith("reference " + further + "\n" + kTensors)),
              "x.tile:2:11: error: the reference 'plain' names a reference itself\n"
              "reference plain\n"
              "          ^~~~~\n"
              "plain.tile:2:1: note: it stands here\n"
              "reference " +
                  further + "\n^" + std::string(9 + further.size(), '~') +
                  "\n"
                  "hint: a reference may fix its choices, and names no program\n");
}

TEST(References, TakeTheSameTensorsAndScalars) {
  EXPECT_EQ(said("reference plain", plainWith("tensor y[row; c]: f32 optional, z[row]\nscalar rows: i32\n")),
            "x.tile:4:8: error: the reference 'plain' has no tensor 'x'\n"
            "tensor x[row; c], y[row; c]: f32 optional\n"
            "       ^\n"
            "plain.tile:1:8: note: it begins here\n"
            "kernel plain\n"
            "       ^~~~~\n"
            "plain.tile:2:33: error: the program 'x' has no tensor 'z', which its reference has\n"
            "tensor y[row; c]: f32 optional, z[row]\n"
            "                                ^\n"
            "x.tile:1:8: note: it begins here\n"
            "kernel x\n"
            "       ^\n");
  EXPECT_EQ(said("reference plain", plainWith("tensor x[row; c], y[row; c]: f32 optional\nscalar rows: f32\n")),
            "x.tile:5:8: error: scalar 'rows' has the type i32 here, and the type f32 in the reference 'plain'\n"
            "scalar rows: i32\n"
            "       ^~~~\n"
            "plain.tile:3:8: note: the reference declares it here\n"
            "scalar rows: f32\n"
            "       ^~~~\n");
}

TEST(References, DeclareTensorsAlike) {
  const struct {
    const char *own, *other, *text;
  } cases[] = {
      {"x[row; c]", "x[row, one; c]", "1 coordinate here, and 2 coordinates"},
      {"x[row; c]", "x[row]", "rows of several elements here, and rows of one element"},
      {"x[row; c]: bf16", "x[row; c]", "elements of bf16 here, and elements of io"},
      {"x[row; c] optional", "x[row; c]", "'optional' here, and no 'optional'"},
      {"x[row; c]", "x[row; c] inout", "no 'inout' here, and 'inout'"},
      {"x[row; c]", "x[row; c] paged(2)", "no 'paged' here, and 'paged'"},
  };
  for (const auto &[own, other, text] : cases) {
    const std::string message =
        said("reference plain", plainWith(std::string("tensor ") + other + "\n"), std::string("tensor ") + own + "\n");
    EXPECT_TRUE(
        message.starts_with("x.tile:4:8: error: tensor 'x' has " + std::string(text) + " in the reference 'plain'\n"))
        << message;
  }
}

} // namespace
} // namespace nsa::language
