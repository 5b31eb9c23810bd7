// What `nsa check` and `nsa fmt` say of a file: for which targets and problems it is compiled, and where messages
// point.
#include "compiler/check/Check.h"

#include "tests/harness/scratch.h"
#include "tests/unit/language/mistake_cases.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace nsa {
namespace {

constexpr std::string_view kCopy = R"(kernel copy

fixed   columns
choice  row_tile = 16 | 32
choice  warps = 1 | 2
require cpu ? warps == 1 : row_tile == 16 * warps
grid    tile = ceildiv(rows, row_tile), 1, 1
threads 32 * warps

axis    row = row_tile, column = 64
tensor  x[row; place: columns], y[row; place: columns]
scalar  rows: i32

let at = tile * row_tile + iota(row) below rows
for place in 0 .. columns by column {
  store y[at; place] = load x[at; place]
}
)";

class LanguageCheck : public testing::Test {
protected:
  CheckReport check(std::string_view text, CheckRequest request = {}) {
    request.path = scratch.write("x.tile", text);
    Result<CheckReport> report = checkProgram(request);
    EXPECT_TRUE(report) << report.status().toString();
    if (!report)
      return {};
    CheckReport plain = std::move(*report);
    for (std::string *part : {&plain.messages, &plain.text})
      for (size_t at = 0; (at = part->find(folder(), at)) != std::string::npos;)
        part->erase(at, folder().size());
    return plain;
  }
  std::string refusal(std::string_view text, CheckRequest request) {
    request.path = scratch.write("x.tile", text);
    Result<CheckReport> report = checkProgram(request);
    EXPECT_FALSE(report);
    std::string message = report ? "" : report.status().toString();
    if (const size_t at = message.find(folder()); at != std::string::npos)
      message.erase(at, folder().size());
    return message;
  }
  std::string folder() const { return scratch.file(""); }

  // The text with one part replaced.
  static std::string changed(const std::string &from, const std::string &to) {
    std::string text(kCopy);
    test::replaceOnce(text, from, to);
    return text;
  }

  test::Scratch scratch;
};

TEST_F(LanguageCheck, AGoodProgramIsCompiledForEachTargetAndType) {
  const CheckReport report = check(kCopy);
  EXPECT_TRUE(report.isGood);
  EXPECT_EQ(report.messages, "");
  EXPECT_EQ(report.text, "x.tile: 21 programs are right, for cpu, sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_120a; "
                         "assumed: columns = 64\n");
  EXPECT_EQ(check(kCopy, {.values = {{"columns", "1000"}, {"dtype", "fp32"}}, .target = "sm_90a"}).text,
            "x.tile: 1 program is right, for sm_90a\n");
  EXPECT_EQ(check(changed("fixed   columns\n", "targets cpu, sm_80\nfixed   columns\n")).text,
            "x.tile: 6 programs are right, for cpu, sm_80; assumed: columns = 64\n");
}

TEST_F(LanguageCheck, WhatTheTextDoesNotSayIsExplained) {
  const CheckReport report = check(kCopy, {.target = "sm_80", .explains = true});
  EXPECT_TRUE(report.isGood);
  EXPECT_EQ(report.text, "sm_80, columns=64 dtype=bf16; row_tile=16 warps=1\n"
                         "at: i32[row] = tile * 16 + iota(row); exists where at < rows\n"
                         "for place in 0 .. 64 step 64\n"
                         "  y_tile: io[row, column]; exists where at < rows && place_index < 64\n");
}

TEST_F(LanguageCheck, AnErrorOfAllProgramsIsSaidOnce) {
  const CheckReport report = check(changed("[at; place]\n", "[att; place]\n"));
  EXPECT_FALSE(report.isGood);
  EXPECT_EQ(report.text, "");
  EXPECT_EQ(report.messages, "x.tile:16:31: error: unknown name 'att'\n"
                             "  store y[at; place] = load x[att; place]\n"
                             "                              ^~~\n"
                             "hint: did you mean 'at' (line 14)?\n");
}

TEST_F(LanguageCheck, AnErrorOfSomeProgramsNamesOne) {
  const CheckReport report = check(changed("load x[at; place]", "load x[at; cpu ? place : 5]"));
  EXPECT_FALSE(report.isGood);
  EXPECT_EQ(report.messages,
            "x.tile:16:29: error: a column is an index that counts along one axis: first + iota(axis)\n"
            "  store y[at; place] = load x[at; cpu ? place : 5]\n"
            "                            ^~~~~~~~~~~~~~~~~~~~~~\n"
            "note: for sm_80, columns=64 dtype=bf16; row_tile=16 warps=1\n");
}

TEST_F(LanguageCheck, ARequireThatLeavesNothingIsNamed) {
  const CheckReport report = check(changed("threads", "require cpu || row_tile > 64\nthreads"));
  EXPECT_FALSE(report.isGood);
  EXPECT_EQ(report.messages, "x.tile:8:9: error: no configuration is left\n"
                             "require cpu || row_tile > 64\n"
                             "        ^~~~~~~~~~~~~~~~~~~~\n"
                             "note: it does not hold for cpu=0 row_tile=16\n"
                             "note: for sm_80, columns=64 dtype=bf16\n");
}

TEST_F(LanguageCheck, BlocksThatNoMultiprocessorHoldsAreRefused) {
  EXPECT_TRUE(check(changed("threads 32 * warps", "threads 32 * warps, 2")).isGood);
  const CheckReport report = check(changed("threads 32 * warps", "threads 32 * warps, 66 / warps"));
  EXPECT_FALSE(report.isGood);
  EXPECT_EQ(report.messages, "x.tile:8:1: error: no configuration is left\n"
                             "threads 32 * warps, 66 / warps\n"
                             "^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
                             "note: blocks 66 / warps = 66 of 32 threads must be 0 to 32 for warps=1\n"
                             "note: for sm_80, columns=64 dtype=bf16\n");
  for (const char *blocks : {"0 - warps", "33", "576460752303423488", "none", ""})
    EXPECT_FALSE(check(changed("threads 32 * warps", std::string("threads 32 * warps, ") + blocks)).isGood) << blocks;
}

// What is wrong with a line that decides about configurations is said there, once for all programs.
TEST_F(LanguageCheck, AMistakeOfTheChoicesIsSaidAtItsLine) {
  EXPECT_EQ(check(changed("threads", "require row_tile > none\nthreads")).messages,
            "x.tile:8:9: error: unknown name 'none'\n"
            "require row_tile > none\n"
            "        ^~~~~~~~~~~~~~~\n"
            "hint: declare it with fixed, const or choice on an earlier line\n");
  const std::string values = " = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12 | 13 | 14 | 15 | 16 | 17";
  const std::string many =
      check(changed("threads", "choice a" + values + ", b" + values + ", c" + values + ", d" + values + "\nthreads"))
          .messages;
  EXPECT_NE(many.find("error: the choices multiply to more than 65536"), std::string::npos) << many;
  // Of a combination that no `require` before it excludes.
  EXPECT_EQ(check(changed("threads", "const part = 32 / (row_tile - 16)\nthreads")).messages,
            "x.tile:8:1: error: expression '32 / (row_tile - 16)': 32 / 0 divides by zero\n"
            "const part = 32 / (row_tile - 16)\n"
            "^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n");
}

// The work is one for all targets and configurations.
TEST_F(LanguageCheck, AWorkIsMadeOfTheCallsNumbers) {
  EXPECT_EQ(
      check(changed("threads", "const row_bytes = columns * dtype_bytes\nwork bytes = 2 * rows * row_bytes\nthreads"))
          .messages,
      "");
  for (const char *name : {"row_tile", "dot_step", "tiles", "warp_rows", "scale"})
    EXPECT_EQ(check(changed("threads 32 * warps\n",
                            "const warp_rows = row_tile / warps\nscalar scale: f32\nwork flops = rows * " +
                                std::string(name) + "\nthreads 32 * warps\n"))
                  .messages,
              "x.tile:10:21: error: the work of a call is not made of '" + std::string(name) +
                  "'\nwork flops = rows * " + name + "\n                    ^" +
                  std::string(std::string_view(name).size() - 1, '~') +
                  "\nhint: it is made of fixed values, constants of them, and scalars of i32\n");
  EXPECT_EQ(
      check(changed("threads", "work flops = rows * 0.5\nthreads")).messages,
      "x.tile:8:14: error: the work of a call is an expression of integers: numbers are decimal integers at column "
      "9, found '.'\n"
      "work flops = rows * 0.5\n"
      "             ^~~~~~~~~~\n");
}

TEST_F(LanguageCheck, TilesThatDoNotFitAreCounted) {
  const CheckReport report = check(R"(kernel large

grid    1
axis    row = 64, key = 512, d = 256
threads 128
tensor  q[time; d], k[time; d], out[time; place: 512]
scalar  rows: i32

let index  = iota(row) below rows
let q_tile = load q[index]
for at in 0 .. rows by key @stages(2) {
  let k_tile = load k[at]
  store out[index; at] = dot(q_tile, k_tile) over d
}
)",
                                   {.values = {{"dtype", "bf16"}}, .target = "sm_86"});
  EXPECT_FALSE(report.isGood);
  EXPECT_EQ(
      report.messages,
      "x.tile:1:8: error: no configuration fits: needs 557056 bytes of shared memory, but a block may use 101376\n"
      "kernel large\n"
      "       ^~~~~\n"
      "x.tile:10:19: note: a tile of 32768 bytes\n"
      "let q_tile = load q[index]\n"
      "                  ^\n"
      "x.tile:12:21: note: a tile of 524288 bytes\n"
      "  let k_tile = load k[at]\n"
      "                    ^\n"
      "hint: require shared_bytes <= shared_limit, with a const shared_bytes that counts the tiles, excludes "
      "configurations that do not fit\n");
}

// Every program that the language has and no target can do, with its one message: what is made of a value that was
// refused is not refused again.
TEST_F(LanguageCheck, WhatNoTargetCanDoIsSaidOnce) {
  constexpr std::string_view kOpening = R"(kernel x
grid    1
threads 32
axis    row = 16, key = 32, d = 64, e = 64, branch = 3 outer, twelve = 12
record  Wide { r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12, r13, r14, r15, r16: i32 }
tensor  (q, k, q_out)[time; d], (v, v_out)[time; e], (turned, turned_from)[time; row], sums[time]: f32, places[n]: i32, wide[n]: Wide
scalar  rows: i32
let row_at = iota(row) below rows
)";
  const std::vector<language::Mistake> refusals =
      language::readMistakes(NSA_SOURCE_DIR "/tests/unit/language_check/refusals.txt");
  ASSERT_GE(refusals.size(), 10u);
  std::string found;
  for (const language::Mistake &refusal : refusals) {
    const CheckReport report =
        check(std::string(kOpening) + refusal.program, {.values = {{"dtype", "bf16"}}, .target = "sm_80"});
    EXPECT_FALSE(report.isGood) << refusal.title;
    EXPECT_EQ(report.messages, refusal.messages) << refusal.title;
    found += "=== " + refusal.title + "\n" + refusal.program + "---\n" + report.messages;
  }
  // As NSA_WRITE_MISTAKES of the type checker's.
  if (const char *output = std::getenv("NSA_WRITE_REFUSALS"))
    std::ofstream(output) << found;
}

TEST_F(LanguageCheck, ALibraryStandsBesideItsKernel) {
  scratch.write("library/twice.tile", "library twice\nimport half\nfn twice(x) { return x / half_of_one() }\n");
  scratch.write("library/half.tile", "library half\nfn half_of_one() { return 0.5 }\n");
  std::string text = changed("fixed   columns\n", "import twice\nfixed   columns\n");
  test::replaceOnce(text, "= load x[at; place]", "= twice(load x[at; place])");
  EXPECT_EQ(check(text).messages, "");
  // A library is checked by its declarations, and finds libraries beside it.
  EXPECT_TRUE(checkProgram({.path = scratch.file("library/twice.tile")})->isGood);
  EXPECT_EQ(check("library wrong\nconst a = b\n").messages, "x.tile:2:11: error: 'b' is no constant\n"
                                                            "const a = b\n"
                                                            "          ^\n");
}

TEST_F(LanguageCheck, ANameThatIsNearlyRightIsSuggested) {
  const auto messages = [&](const std::string &name) {
    return check(changed("fixed   columns\n", "import " + name + "\nfixed   columns\n")).messages;
  };
  // A library of the templates, and one beside the kernel.
  EXPECT_EQ(messages("softmx"), "x.tile:3:8: error: there is no library 'softmx'\n"
                                "import softmx\n"
                                "       ^~~~~~\n"
                                "hint: did you mean 'softmax'?\n");
  EXPECT_EQ(messages("doubled"), "x.tile:3:8: error: there is no library 'doubled'\n"
                                 "import doubled\n"
                                 "       ^~~~~~~\n");
  scratch.write("library/double.tile", "library double\nimport doubles\n");
  EXPECT_EQ(messages("doubled"), "x.tile:3:8: error: there is no library 'doubled'\n"
                                 "import doubled\n"
                                 "       ^~~~~~~\n"
                                 "hint: did you mean 'double'?\n");
  // A library finds others beside it.
  scratch.write("library/halves.tile", "library halves\n");
  scratch.write("library/thirds.tile", "library thirds\nimport halvs\n");
  const std::string thirds = checkProgram({.path = scratch.file("library/thirds.tile")})->messages;
  EXPECT_NE(thirds.find("hint: did you mean 'halves'?\n"), std::string::npos) << thirds;
  // A function of a library that is imported.
  std::string text = changed("fixed   columns\n", "import softmax\nfixed   columns\n");
  test::replaceOnce(text, "= load x[at; place]", "= softmax_stp(load x[at; place])");
  EXPECT_EQ(check(text).messages, "x.tile:17:24: error: unknown function 'softmax_stp'\n"
                                  "  store y[at; place] = softmax_stp(load x[at; place])\n"
                                  "                       ^~~~~~~~~~~\n"
                                  "hint: did you mean 'softmax_step'?\n");
}

// The words of all mistakes are in references_test.cpp.
TEST_F(LanguageCheck, AReferenceStandsBesideItsKernel) {
  const std::string text = changed("fixed   columns\n", "reference plain\nfixed   columns\n");
  EXPECT_EQ(check(text).messages, "x.tile:3:11: error: there is no program 'plain'\n"
                                  "reference plain\n"
                                  "          ^~~~~\n"
                                  "hint: save it as plain.tile in the folder of this file\n");
  scratch.write("plain.tile", "kernel plain\ntensor x[row; place], y[row; place]: f32\nscalar rows: i32\n");
  EXPECT_EQ(check(text).messages, "x.tile:12:33: error: tensor 'y' has elements of io here, and elements of f32 in the "
                                  "reference 'plain'\n"
                                  "tensor  x[row; place: columns], y[row; place: columns]\n"
                                  "                                ^\n"
                                  "plain.tile:2:23: note: the reference declares it here\n"
                                  "tensor x[row; place], y[row; place]: f32\n"
                                  "                      ^\n");
  scratch.write("plain.tile", "kernel plain\ntensor x[row; place], y[row; place]\nscalar rows: i32\n");
  EXPECT_TRUE(check(text).isGood);
  EXPECT_EQ(check(changed("fixed   columns\n", "reference row_tile = 8\nfixed   columns\n")).messages,
            "x.tile:3:22: error: the choice 'row_tile' is never 8\n"
            "reference row_tile = 8\n"
            "                     ^\n"
            "x.tile:5:9: note: it is one of 16, 32\n"
            "choice  row_tile = 16 | 32\n"
            "        ^~~~~~~~\n");
}

TEST_F(LanguageCheck, AnImportLeavesNoFolder) {
  scratch.write("secret.tile", "library secret\n");
  EXPECT_EQ(check("kernel x\nimport secret\ngrid 1\nthreads 32\n").messages,
            "x.tile:2:8: error: there is no library 'secret'\n"
            "import secret\n"
            "       ^~~~~~\n");
  EXPECT_EQ(check("kernel x\nimport ../secret\n").messages, "x.tile:2:8: error: expected a name, found '..'\n"
                                                            "import ../secret\n"
                                                            "       ^~\n");
  std::filesystem::create_directories(scratch.file("library/folder.tile"));
  EXPECT_EQ(check("kernel x\nimport folder\ngrid 1\nthreads 32\n").messages,
            "x.tile:2:8: error: there is no library 'folder'\n"
            "import folder\n"
            "       ^~~~~~\n");
}

TEST_F(LanguageCheck, OperatorsTargetsAndSizesOfTheGridAreKnown) {
  EXPECT_EQ(check("kernel x serves windows, nsa\ntargets sm_75\ngrid 1\nthreads 32\n").messages,
            "x.tile:1:17: error: there is no operator 'windows'\n"
            "kernel x serves windows, nsa\n"
            "                ^~~~~~~\n"
            "hint: a kernel of one's own has no 'serves'\n"
            "x.tile:1:26: error: the operator 'nsa' is several kernels, and has none\n"
            "kernel x serves windows, nsa\n"
            "                         ^~~\n"
            "x.tile:2:9: error: there is no target 'sm_75'\n"
            "targets sm_75\n"
            "        ^~~~~\n"
            "hint: the targets are gpu, cpu, sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_120a\n");
  EXPECT_EQ(check(changed("ceildiv(rows", "ceildiv(row_count")).messages,
            "x.tile:7:24: error: no size of the grid is called 'row_count'\n"
            "grid    tile = ceildiv(row_count, row_tile), 1, 1\n"
            "                       ^~~~~~~~~\n"
            "hint: declare it: scalar row_count: i32\n");
}

// Each name is said with its place, and with what is meant or what there is. What else is wrong is said too.
TEST_F(LanguageCheck, AKernelDeclaresWhatItsOperatorGives) {
  const std::string text = R"(kernel x serves combine

fixed   dtype, v_dim, qk_dim
grid    block = batch, 1, 1
threads 32
axis    row = 16
tensor  gatez[entry, time, head, kind], block_list[entry, time, head, slot]: i32 optional
tensor  o_cmp[time; value: v_dim] optional, reads[entry, time, head]: f32 optional, o_sel[entry, time, head]: i32
scalar  totalq, batch: i32, window: f32

let at = iota(row) + rwo
)";
  const std::string names =
      "x.tile:7:9: error: the operator 'combine' has no tensor 'gatez'\n"
      "tensor  gatez[entry, time, head, kind], block_list[entry, time, head, slot]: i32 optional\n"
      "        ^~~~~\n"
      "hint: did you mean 'gates'?\n"
      "x.tile:7:41: error: the operator 'combine' has no tensor 'block_list'\n"
      "tensor  gatez[entry, time, head, kind], block_list[entry, time, head, slot]: i32 optional\n"
      "                                        ^~~~~~~~~~\n"
      "hint: its tensors are out, reads, gates, o_cmp, o_sel, o_win, reads_cmp, reads_sel, reads_win, sequences, "
      "status\n"
      "x.tile:8:9: error: a row of the tensor 'o_cmp' has 3 coordinates, and not 1\n"
      "tensor  o_cmp[time; value: v_dim] optional, reads[entry, time, head]: f32 optional, o_sel[entry, time, head]: "
      "i32\n"
      "        ^~~~~\n"
      "x.tile:8:71: error: the tensor 'reads' is of i32, and not of f32\n"
      "tensor  o_cmp[time; value: v_dim] optional, reads[entry, time, head]: f32 optional, o_sel[entry, time, head]: "
      "i32\n"
      "                                                                      ^~~\n"
      "x.tile:8:111: error: the tensor 'o_sel' is of io, and not of i32\n"
      "tensor  o_cmp[time; value: v_dim] optional, reads[entry, time, head]: f32 optional, o_sel[entry, time, head]: "
      "i32\n"
      "                                                                                                              "
      "^~~\n"
      "x.tile:9:9: error: no operator has a number 'totalq'\n"
      "scalar  totalq, batch: i32, window: f32\n"
      "        ^~~~~~\n"
      "hint: did you mean 'total_q'?\n"
      "x.tile:9:37: error: the number 'window' is i32, and not f32\n"
      "scalar  totalq, batch: i32, window: f32\n"
      "                                    ^~~\n";
  EXPECT_EQ(check(text).messages, names + "x.tile:3:23: error: problems of the operator 'combine' have no value "
                                          "'qk_dim'\n"
                                          "fixed   dtype, v_dim, qk_dim\n"
                                          "                      ^~~~~~\n"
                                          "hint: their values are dtype, gate, gate_per_group, group, packed, v_dim\n");
  std::string served = text;
  test::replaceOnce(served, ", qk_dim", "");
  EXPECT_EQ(check(served).messages, names + "x.tile:11:22: error: unknown name 'rwo'\n"
                                            "let at = iota(row) + rwo\n"
                                            "                     ^~~\n"
                                            "hint: did you mean 'row' (line 6)?\n");
}

TEST_F(LanguageCheck, AKernelSaysHowItIsLaunched) {
  EXPECT_EQ(check("kernel x\n").messages, "x.tile:1:8: error: the kernel declares no grid\n"
                                          "kernel x\n"
                                          "       ^\n"
                                          "hint: grid block = ceildiv(rows, row_tile), 1, 1\n"
                                          "x.tile:1:8: error: the kernel declares no threads\n"
                                          "kernel x\n"
                                          "       ^\n"
                                          "hint: threads 32 * warps\n");
}

TEST_F(LanguageCheck, ARequestIsRefusedForWhatTheFileHasNoNameFor) {
  EXPECT_EQ(refusal(kCopy, {.values = {{"rows", "5"}}}),
            "invalid argument: rows = 5: is neither a choice nor a fixed value of x.tile (hint: its names are columns, "
            "dtype, row_tile, warps)");
  EXPECT_EQ(refusal(kCopy, {.values = {{"warps", "3"}}}), "invalid argument: warps = 3: must be one of 1, 2");
  EXPECT_EQ(refusal(kCopy, {.values = {{"columns", "many"}}}), "invalid argument: columns = many: must be an integer");
  EXPECT_EQ(refusal(kCopy, {.values = {{"dtype", "fp8_e4m3"}}}),
            "invalid argument: dtype = 'fp8_e4m3': must be one of bf16, fp16, fp32");
  EXPECT_EQ(refusal(kCopy, {.target = "sm_75"}),
            "invalid argument: target = 'sm_75': must be one of cpu, sm_80, sm_86, "
            "sm_89, sm_90a, sm_100a, sm_120a");
  EXPECT_EQ(refusal("kernel x\ntargets cpu\ngrid 1\nthreads 32\n", {.target = "sm_80"}),
            "invalid argument: target = sm_80: is no target of x.tile");
  const Result<CheckReport> absent = checkProgram({.path = scratch.file("absent.tile")});
  EXPECT_FALSE(absent);
  EXPECT_NE(absent.status().toString().find("absent.tile: cannot be read: No such file or directory"),
            std::string::npos)
      << absent.status().toString();
  EXPECT_NE(checkProgram({.path = "/dev/zero"}).status().toString().find("/dev/zero: is no regular file"),
            std::string::npos);
}

// A word is one of those that the value may be in a problem. What no problem has is of the kind with which the kernel
// compares it, or an element type where it stands for one.
TEST_F(LanguageCheck, AGivenValueIsOfItsKind) {
  const std::string words = changed("fixed   columns\n", "fixed   columns, gate, packed, curve, stored\n"
                                                         "const   is_soft = curve != silu\n"
                                                         "tensor  table[row]: stored\n");
  EXPECT_EQ(refusal(words, {.values = {{"gate", "banana"}}}),
            "invalid argument: gate = 'banana': must be one of value, sigmoid, softmax");
  EXPECT_EQ(refusal(words, {.values = {{"packed", "2"}}}), "invalid argument: packed = 2: must be 0 or 1");
  EXPECT_EQ(refusal(words, {.values = {{"curve", "sigmoid"}}}),
            "invalid argument: curve = sigmoid: must be one of relu, gelu, silu");
  EXPECT_EQ(refusal(words, {.values = {{"curve", "1"}}}),
            "invalid argument: curve = 1: must be one of relu, gelu, silu");
  EXPECT_EQ(refusal(words, {.values = {{"stored", "f16"}}}),
            "invalid argument: stored = f16: must be one of bf16, fp16, fp32, int32, fp8_e4m3, fp8_e5m2");
  const CheckRequest right = {.values = {{"gate", "sigmoid"}, {"packed", "0"}, {"curve", "relu"}, {"stored", "fp16"}},
                              .target = "cpu"};
  EXPECT_EQ(check(words, right).messages, "");
}

TEST_F(LanguageCheck, WhatIsNoTextIsRefusedSoon) {
  EXPECT_EQ(check("kernel x\nlet a = \x9f\n").messages, "x.tile:2:9: error: not UTF-8 at byte 0x9f\n"
                                                        "let a = ?\n"
                                                        "        ^\n");
  const CheckReport brackets = check("kernel x\nlet a = " + std::string(10 << 20, '('));
  EXPECT_FALSE(brackets.isGood);
  EXPECT_EQ(brackets.messages.substr(0, brackets.messages.find('\n')),
            "x.tile:2:265: error: nested more than 256 deep");
  EXPECT_NE(check(std::string(17 << 20, '\n')).messages.find("error: the file has more than 16 MiB"),
            std::string::npos);
}

TEST(LanguageFormat, ALayoutIsItsOwnLayout) {
  const FormatReport report = formatProgram("x.tile", "kernel   x\nlet a=1\nlet bcd=2 // two\n");
  EXPECT_TRUE(report.isGood);
  EXPECT_EQ(report.text, "kernel x\nlet a   = 1\nlet bcd = 2 // two\n");
  EXPECT_EQ(formatProgram("x.tile", report.text).text, report.text);
}

TEST(LanguageFormat, ATextWithErrorsHasNone) {
  const FormatReport report = formatProgram("x.tile", "kernel x\nlet a = (\n");
  EXPECT_FALSE(report.isGood);
  EXPECT_EQ(report.text, "");
  EXPECT_EQ(report.messages.substr(0, 15), "x.tile:2:10: er");
}

} // namespace
} // namespace nsa
