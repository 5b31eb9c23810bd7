// Programs of one's own through the C++ header, with the real compiler on the CPU.
#include "runtime/include/nsa/nsa.hpp"
#include "tests/harness/scratch.h"

#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

namespace {

constexpr const char *kText = R"(kernel scaled

fixed   columns
choice  row_tile = 16 | 32
grid    tile = ceildiv(rows, row_tile), 1, 1
threads 32
targets cpu

axis    row = row_tile, column = 32
tensor  (x, y)[row: rows; place: columns]
scalar  rows, shift: i32, scale: f32

let at = tile * row_tile + iota(row) below rows
for place in 0 .. columns by column {
  store y[at; place] = load x[at; place] * scale + shift as f32
}
)";
constexpr std::int64_t kRows = 20, kColumns = 50;

class ProgramWrapper : public testing::Test {
protected:
  ProgramWrapper() {
    options.device = "cpu";
    options.cache_path = ":memory:";
    options.cache_packs = "none";
    options.compiler_path = NSA_COMPILER_LIBRARY;
    options.miss_policy = NSA_MISS_DEFAULT;
    engine.emplace(options);
  }
  // y = 2 x + 3.
  void expectResult(const nsa::Program &program) {
    const nsa::HostWorkspace workspace(program.workspaceSize());
    const int shift = 3;
    program.run({{"x", nsa::Tensor(x, {kRows, kColumns})}, {"y", nsa::Tensor(y, {kRows, kColumns})}},
                {{"scale", 2}, {"shift", shift}}, workspace.data(), workspace.size());
    EXPECT_EQ(y, std::vector<float>(y.size(), 5));
    program.checkStatus();
    y.assign(y.size(), 0);
  }
  template <typename Call> static std::string errorOf(const Call &call) {
    try {
      call();
    } catch (const nsa::Error &error) {
      return error.what();
    }
    return "nothing was thrown";
  }

  nsa_engine_options options = NSA_INIT(nsa_engine_options);
  std::optional<nsa::Engine> engine;
  const nsa::ProgramSource source = nsa::ProgramSource::text(kText);
  const std::vector<nsa::ProgramValue> values = {{"dtype", "fp32"}, {"columns", kColumns}, {"rows", kRows}};
  std::vector<float> x = std::vector<float>(kRows * kColumns, 1), y = std::vector<float>(kRows * kColumns);
};

TEST_F(ProgramWrapper, AProgramIsMadeRunAndDescribed) {
  const nsa::Program program = engine->program(source, values);
  expectResult(program);
  EXPECT_NE(program.describe().find("\"source\": \"compiled\""), std::string::npos) << program.describe();
  const std::string explained = engine->explainProgram(source, values);
  EXPECT_NE(explained.find("scaled@"), std::string::npos) << explained;
}

TEST_F(ProgramWrapper, ATunedProgramComesFromMemory) {
  const std::string report = engine->tuneProgram(source, values, 5);
  EXPECT_NE(report.find("\"tuned\": true"), std::string::npos) << report;
  const nsa::Program program = engine->program(source, values);
  EXPECT_NE(program.describe().find("\"source\": \"memory\""), std::string::npos) << program.describe();
  expectResult(program);
}

TEST_F(ProgramWrapper, AComparisonIsTheTextOfTheLibrary) {
  const nsa::Program program = engine->program(source, values);
  const nsa::HostWorkspace workspace(program.workspaceSize());
  const std::string text =
      program.compare({{"x", nsa::Tensor(x, {kRows, kColumns})}, {"y", nsa::Tensor(y, {kRows, kColumns})}},
                      {{"scale", 2}, {"shift", 3}}, workspace.data(), workspace.size());
  EXPECT_NE(text.find("\"program\": \"scaled\""), std::string::npos) << text;
  EXPECT_EQ(y, std::vector<float>(y.size(), 5));
}

TEST_F(ProgramWrapper, Checks) {
  const nsa::Program program = engine->program(source, values);
  program.check({{"x", nsa::Tensor(x, {kRows, kColumns})}, {"y", nsa::Tensor(y, {kRows, kColumns})}},
                {{"scale", 2}, {"shift", 3}});
  EXPECT_EQ(y, std::vector<float>(y.size(), 5)) << "what the interpreter computes";
  EXPECT_THROW(program.check({{"x", nsa::Tensor(x, {kRows, kColumns})}}, {{"scale", 2}, {"shift", 3}}), nsa::Error);
}

TEST_F(ProgramWrapper, AProgramOfAFileOutlivesItsEngineAndMoves) {
  const nsa::test::Scratch scratch;
  nsa::Program program = engine->program(nsa::ProgramSource::file(scratch.write("scaled.tile", kText)), values);
  engine.reset();
  expectResult(program);
  const nsa::Program moved = std::move(program);
  EXPECT_EQ(program.handle(), nullptr); // NOLINT(bugprone-use-after-move): what is moved away is empty
  expectResult(moved);
}

TEST_F(ProgramWrapper, ErrorsAreThrown) {
  EXPECT_EQ(errorOf([&] { engine->program(nsa::ProgramSource::text("kernel broken\n\nlet x 1\n", "mine"), {}); }),
            "mine:3:7: error: expected '=', found '1'\nlet x 1\n      ^\n (hint: save the text as mine.tile: nsa check "
            "mine.tile shows what is wrong)");
  const nsa::Program program = engine->program(source, values);
  const auto run = [&](std::initializer_list<nsa::ProgramTensor> tensors,
                       std::initializer_list<nsa::ProgramScalar> scalars) {
    return errorOf([&] { program.run(tensors, scalars, nullptr, 0); });
  };
  EXPECT_EQ(run({{"x", nsa::Tensor(x, {kRows, kColumns})}}, {}),
            "program scaled: y = absent: must be bound, because it is not optional (hint: its dimensions are [row: "
            "rows, place: columns])");
  EXPECT_EQ(run({}, {{"scal", 1.5}}).substr(0, 27), "program scaled: x = absent:");
  const std::vector<nsa::ProgramScalar> many(200, {"scale", 1});
  EXPECT_THROW(program.run(nullptr, 0, many.data(), many.size(), nullptr, 0), std::invalid_argument);
  EXPECT_EQ(errorOf([&] { program.run(nullptr, 0, many.data(), 100, nullptr, 0); }),
            "scalars = 100: a program takes at most 29");
}

TEST(EmptyProgram, RefusesToWork) {
  const nsa::Program program;
  EXPECT_EQ(program.handle(), nullptr);
  EXPECT_THROW((void)program.workspaceSize(), nsa::Error);
  EXPECT_THROW((void)program.describe(), nsa::Error);
  EXPECT_THROW(program.checkStatus(), nsa::Error);
  EXPECT_THROW(program.run({}, {}, nullptr, 0), nsa::Error);
}

} // namespace
