// The checked mode of programs of one's own, through the C ABI.
#include "tests/harness/program_fixture.h"
#include "tests/harness/seed.h"

#include <cmath>
#include <functional>

namespace nsa::test {
namespace {

// y = x + 1, where the last `less` columns of x are taken as 0.
constexpr const char *kCopied = R"(kernel copied

fixed   columns
choice  row_tile = 16, warps = 1
grid    tile = ceildiv(rows, row_tile), 1, 1
threads 32 * warps

axis    row = row_tile, column = 32
tensor  x[row: rows; place: columns], y[row: rows; place: columns]
scalar  rows, less: i32

let at = tile * row_tile + iota(row) below rows
for place in 0 .. columns by column {
  let s = mask(load x[at; place] as f32, place < columns - less, 0) over column when low(place) + 31 >= columns - less
  store y[at; place] = s + 1
}
)";
constexpr int64_t kCopiedRows = 20, kCopiedColumns = 50;

class ProgramCheck : public ProgramTest {
protected:
  void SetUp() override {
    ProgramTest::SetUp();
    if (!IsSkipped())
      engine = engineOf(settings());
  }

  // Runs the program in checked mode for x = 1, with the scalar `less`, and expects y = `y`; NaN: y was not changed.
  std::string checked(const std::string &from = "", const std::string &to = "", double y = NAN, double less = 0) {
    std::string text = kCopied;
    if (!from.empty())
      replaceOnce(text, from, to);
    const ProgramRequest request =
        ProgramRequest::ofFile(scratch.write("copied.tile", text),
                               {{"dtype", "bf16"}, {"columns", std::to_string(kCopiedColumns)}, {"rows", "20"}});
    Result<ProgramHandle> program = request.create(engine.get(), accelerator().stream());
    EXPECT_TRUE(program) << program.status().toString();
    if (!program)
      return "";
    const auto count = static_cast<size_t>(kCopiedRows * kCopiedColumns);
    Example example;
    example.of = {"copied", DType::kBf16, {}};
    example.tensors = {
        {"x", DType::kBf16, {kCopiedRows, kCopiedColumns}, false, std::vector<double>(count, 1), kCopiedColumns},
        {"y", DType::kBf16, {kCopiedRows, kCopiedColumns}, true, std::vector<double>(count, y), kCopiedColumns}};
    example.scalars = {{"less", less}};
    Result<ProgramCall> call = ProgramCall::make(accelerator(), program->get(), example);
    EXPECT_TRUE(call) << call.status().toString();
    if (!call)
      return "";
    if (change)
      change(*call);
    const std::string error = call->check().toString();
    if (!std::isnan(y))
      call->expectRight();
    return error;
  }
  tools::EngineHandle engine;
  std::function<void(ProgramCall &)> change;
};

TEST_F(ProgramCheck, ARightProgramIsRun) { EXPECT_EQ(checked("", "", 2), "ok"); }

TEST_F(ProgramCheck, LoadsAndStoresOutsideOfTensors) {
  EXPECT_EQ(
      checked("iota(row) below rows", "iota(row) below rows + 1"),
      R"(invalid argument: copied.tile:14:16: error: the load is outside of tensor 'x': 'row' is 20, and its extent is 20
  let s = mask(load x[at; place] as f32, place < columns - less, 0) over column when low(place) + 31 >= columns - less
               ^~~~~~~~~~~~~~~~~
note: it is at x[20; 0] of x[20; 50], in the program tile = 1
note: it is the first one of 50 elements
copied.tile:15:3: error: the store is outside of tensor 'y': 'row' is 20, and its extent is 20
  store y[at; place] = s + 1
  ^~~~~~~~~~~~~~~~~~~~~~~~~~
note: it is at y[20; 0] of y[20; 50], in the program tile = 1
note: it is the first one of 50 elements
 (hint: the call was checked with row_tile=16 warps=1))");
}

TEST_F(ProgramCheck, TwoStoresToOnePlace) {
  EXPECT_EQ(
      checked("store y[at; place]", "store unique y[at / 2; place]"),
      R"(invalid argument: copied.tile:15:3: error: two rows are stored to y[0; 0], and which one stays there is not known
  store unique y[at / 2; place] = s + 1
  ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
note: it is in the program tile = 0
note: 'unique' promises that no two rows have one place
note: it is the first one of 500 elements
 (hint: the call was checked with row_tile=16 warps=1))");
}

TEST_F(ProgramCheck, AWhenThatIsTooNarrow) {
  EXPECT_EQ(
      checked("low(place) + 31 >=", "low(place) >=", NAN, 10),
      R"(invalid argument: copied.tile:14:86: error: the mask leaves out row = 0, column = 8 of its tile, and 'when' does not hold there
  let s = mask(load x[at; place] as f32, place < columns - less, 0) over column when low(place) >= columns - less
                                                                                     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~
note: the predicate fails there, in the program tile = 0
note: it is the first one of 480 elements
 (hint: the call was checked with row_tile=16 warps=1))");
}

// Reports are errors of the call, as they are of a run.
TEST_F(ProgramCheck, WhatAProgramReports) {
  std::string text = kCopied;
  replaceOnce(text, "\n\nfixed", "\nimport status\n\nfixed");
  replaceOnce(text, "\n\nlet at =", "\n\nreport bad_page at tile * 10 if tile == 1\nlet at =");
  EXPECT_EQ(
      checked(kCopied, text, 2),
      "device error: status = bad_page at 10: the program copied (copied.tile) reported it (hint: 'report bad_page' "
      "in copied.tile or its libraries says when)");
}

TEST_F(ProgramCheck, WhatTheInterpreterLacks) {
  const std::string list = "let best = top(4) over row\n";
  EXPECT_EQ(checked("for place", list + "for place"),
            "unsupported: the interpreter cannot go on: copied.tile:13:12: the interpreter has no function top: top(4) "
            "over row");
}

TEST_F(ProgramCheck, ACallOfManyElements) {
  change = [](ProgramCall &call) {
    for (nsa_tensor &tensor : call.tensors)
      tensor.shape[0] = 1 << 20;
  };
  EXPECT_EQ(
      checked(),
      "invalid argument: program copied: tensors = more than 67108864 elements: a call that is checked has at most so "
      "many in all its tensors, with what lies between their elements (hint: check a call of smaller "
      "sizes)");
  // As many elements as overflow 64 bits, at one place.
  change = [](ProgramCall &call) {
    for (nsa_tensor &tensor : call.tensors) {
      tensor.shape[0] = tensor.shape[1] = INT32_MAX;
      tensor.strides[0] = tensor.strides[1] = 0;
    }
  };
  EXPECT_NE(checked().find("invalid argument"), std::string::npos);
  change = [](ProgramCall &call) { call.names[0] = "z"; };
  EXPECT_EQ(
      checked(),
      "invalid argument: program copied: tensor = z: the program declares no such tensor (hint: it declares x, y)");
  nsa_error error = {};
  EXPECT_EQ(nsa_program_check(nullptr, nullptr, 0, nullptr, 0, nullptr, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "program = null: must not be null");
}

// The examples are right, also those that import a library which ships with the compiler, and the interpreter computes
// what they compute.
TEST_F(ProgramCheck, TheExamplesAreRight) {
  std::mt19937_64 random(freshSeed());
  for (ExampleCase example : briefExampleCases()) {
    for (const char *size : {"rows", "length"})
      if (example.sizes.contains(size))
        example.sizes[size] = 20;
    SCOPED_TRACE(example.name());
    Result<ProgramHandle> program = ProgramRequest::ofExample(example).create(engine.get(), accelerator().stream());
    ASSERT_TRUE(program) << program.status().toString();
    Result<ProgramCall> call = ProgramCall::make(accelerator(), program->get(), drawExample(example, random));
    ASSERT_TRUE(call) << call.status().toString();
    EXPECT_EQ(call->check().toString(), "ok");
    call->expectRight();
  }
}

} // namespace
} // namespace nsa::test
