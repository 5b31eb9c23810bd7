// Drawn programs of the tile language on every device, compiled and run through the C ABI, against the interpreter of
// the language.
#include "compiler/driver/EmbeddedTemplates.h"
#include "tests/harness/program_launch.h"
#include "tests/harness/seed.h"
#include "tests/harness/session.h"
#include "tests/harness/tile/drawn_program.h"

namespace nsa::test {
namespace {

using tile::DrawnProgram;
using tile::TileTensor;
using Results = std::map<std::string, TileTensor>;

constexpr int kOnCpu = 200, kOnGpu = 20;

// What stands in a result that the interpreter says cannot stand there.
struct Comparison {
  std::string first; // the first element; empty: there is none
  int64_t wrong = 0, unknown = 0, compared = 0;
};

Comparison compare(const Results &expected, const Results &actual) {
  Comparison result;
  for (const auto &[name, wanted] : expected) {
    const TileTensor &got = actual.at(name);
    for (size_t i = 0; i < wanted.cells.size(); ++i) {
      ++result.compared;
      result.unknown += wanted.cells[i].isUnknown() ? 1 : 0;
      if (tile::mayBe(wanted.element, wanted.cells[i], got.cells[i].value))
        continue;
      if (result.wrong++ == 0)
        result.first = name + " element " + std::to_string(i) + ": " + std::to_string(got.cells[i].value) + ", not " +
                       std::to_string(wanted.cells[i].value) + " +- " + std::to_string(wanted.cells[i].error);
    }
  }
  return result;
}

// The outputs as the interpreter leaves them.
Results interpreted(const std::string &text, const DrawnProgram &program, tile::TileFindings &findings) {
  tile::TileCall call = program.call;
  findings = tile::interpret(text, call, program.libraries);
  Results results;
  for (const std::string &name : program.outputs)
    results.emplace(name, std::move(call.tensors.at(name)));
  return results;
}

class DrawnPrograms : public ::testing::Test {
protected:
  void SetUp() override {
    if (const std::string &reason = Session::get().skipReason(); !reason.empty())
      GTEST_SKIP() << reason;
    Result<std::unique_ptr<ProgramDevice>> opened = ProgramDevice::open();
    ASSERT_TRUE(opened) << opened.status().toString();
    device = std::move(*opened);
  }

  // Draws a program, and another one where nothing is stored or rounding decides too much of what is.
  void draw(uint64_t seed, const std::string &dtype) {
    std::string_view softmax;
    for (const EmbeddedTemplate &file : embeddedTemplates())
      if (file.path == "tile/library/softmax.tile")
        softmax = file.text;
    for (int attempt = 0; attempt < 5; ++attempt) {
      program = tile::drawProgram(seed + 1000003 * static_cast<uint64_t>(attempt), dtype, device->isCuda());
      program.libraries.emplace("softmax", softmax);
      expected = interpreted(program.text, program, findings);
      const Comparison known = compare(expected, expected);
      if (findings.stored > 0 && known.unknown * 10 <= known.compared)
        return;
    }
    FAIL() << "five programs store nothing, or nothing that is known";
  }

  std::unique_ptr<ProgramDevice> device;
  DrawnProgram program;
  tile::TileFindings findings;
  Results expected;
};

class EachDrawnProgram : public DrawnPrograms, public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Drawn, EachDrawnProgram,
                         ::testing::Range(0, drawnCases(isTestDeviceCuda() ? kOnGpu : kOnCpu)));

TEST_P(EachDrawnProgram, ComputesWhatTheInterpreterComputes) {
  static constexpr const char *kTypes[] = {"fp32", "bf16", "fp32", "fp16"};
  const uint64_t seed = freshSeed() + static_cast<uint64_t>(GetParam());
  draw(seed, kTypes[seed % 4]);
  ASSERT_FALSE(HasFatalFailure());
  SCOPED_TRACE(program.text);
  ASSERT_TRUE(findings.faults.empty()) << findings.faults.front().message;
  const Result<Results> actual =
      device->run(program.text, program.call, program.outputs, static_cast<int64_t>(seed / 4 % 5));
  ASSERT_TRUE(actual) << actual.status().toString();
  const Comparison found = compare(expected, *actual);
  EXPECT_EQ(found.wrong, 0) << "of " << found.compared << " elements; the first one is " << found.first;
}

// The comparison finds programs that are not the drawn ones: what one store stores is a little more. A store of no
// element, or of numbers that are much greater, hides the change.
TEST_F(DrawnPrograms, AnotherConstantIsFound) {
  constexpr int kPrograms = 10;
  const uint64_t seed = freshSeed();
  int mutants = 0, seen = 0;
  for (int number = 0; number < kPrograms; ++number) {
    draw(seed + static_cast<uint64_t>(number), "fp32");
    ASSERT_FALSE(HasFatalFailure());
    const Result<Results> actual = device->run(program.text, program.call, program.outputs, 0);
    ASSERT_TRUE(actual) << actual.status().toString();
    for (size_t at = program.text.find("store "); at != std::string::npos; at = program.text.find("store ", at + 1)) {
      const std::string before = "] = ";
      const size_t value = program.text.find(before, at) + before.size();
      const size_t bracket = program.text.find('[', at), name = program.text.rfind(' ', bracket) + 1;
      const TileTensor &stored = program.call.tensors.at(program.text.substr(name, bracket - name));
      std::string text = program.text;
      text.insert(value, stored.element == tile::Element::kI32 ? "1 + " : "0.01 + ");
      tile::TileFindings ignored;
      ++mutants;
      seen += compare(interpreted(text, program, ignored), *actual).wrong > 0 ? 1 : 0;
    }
  }
  EXPECT_GE(mutants, kPrograms);
  EXPECT_GE(seen * 10, mutants * 8) << seen << " of " << mutants;
}

} // namespace
} // namespace nsa::test
