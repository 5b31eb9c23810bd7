// The clause `reference`: with whose result a tuning compares the configurations of a program of one's own.
#include "tests/harness/program_fixture.h"

#include <algorithm>

namespace nsa::test {
namespace {

// y = x + columns / 1000, where a configuration has its own constant `wrong`.
constexpr const char *kShifted = R"(kernel shifted
REFERENCE
fixed   columns
choice  row_tile = 16 | 32, wrong = 0 | 1, warps = 1 | 2
require cpu ? warps == 1 : row_tile == 16 * warps
cost    row_tile + COST
grid    tile = ceildiv(rows, row_tile), 1, 1
threads 32 * warps

axis    row = row_tile, column = 32
tensor  x[row: rows; place: columns]: f32, y[row: rows; place: columns]: f32
scalar  rows: i32, scale: f32

let at = tile * row_tile + iota(row) below rows
for place in 0 .. columns by column {
  store y[at; place] = load x[at; place] * scale + wrong
}
)";
// The same without choices.
constexpr const char *kPlain = R"(kernel plain

fixed   columns
grid    row = rows, chunk = ceildiv(columns, 32), 1
threads 32

axis    column = 32
scalar  scale: f32, rows: i32
tensor  y[row: rows; place: columns]: f32, x[row: rows; place: columns]: f32

let place = chunk * 32 + iota(column) below columns
store y[row; place] = load x[row; place] * scale
)";

// The program with its clause, "" for none, and with the cost of a wrong configuration and of a right one.
std::string shifted(const std::string &reference, bool isWrongCheaper = false) {
  std::string text = kShifted;
  replaceOnce(text, "REFERENCE", reference);
  replaceOnce(text, "COST", isWrongCheaper ? "(1 - wrong) * 1000" : "wrong * 1000");
  return text;
}

// A call with x = 3 and the scale 2, of a configuration that adds 1.
Example shiftedCall() {
  Example example;
  example.of = {"shifted", DType::kF32, {}};
  example.tensors = {{"x", DType::kF32, {40, 50}, false, std::vector<double>(2000, 3), 50},
                     {"y", DType::kF32, {40, 50}, true, std::vector<double>(2000, 7), 50}};
  example.scalars = {{"scale", 2}};
  return example;
}

class ProgramReference : public ProgramTest {
protected:
  void SetUp() override {
    ProgramTest::SetUp();
    if (!IsSkipped())
      engine = engineOf(settings());
  }
  ProgramRequest ofFile(const std::string &text) const {
    return ProgramRequest::ofFile(scratch.write("shifted.tile", text), kValues);
  }
  static ProgramRequest ofText(const std::string &text) { return ProgramRequest::ofText(text, kValues); }
  // Tunes, and expects that configurations with `wrong=RIGHT` were measured and all others were rejected, of each two.
  void expectGate(const ProgramRequest &request, int right) const {
    const Result<nlohmann::json> report = request.tune(engine.get(), 30);
    ASSERT_TRUE(report) << report.status().toString();
    SCOPED_TRACE(report->dump(2));
    int measured = 0, rejected = 0;
    for (const nlohmann::json &candidate : report->at("candidates")) {
      const std::string outcome = candidate.at("outcome"), config = candidate.at("config");
      const bool isRight = config.find("wrong=" + std::to_string(right)) != std::string::npos;
      if (outcome == "rejected") {
        ++rejected;
        EXPECT_FALSE(isRight) << config;
        EXPECT_NE(candidate.at("detail").get<std::string>().find("y"), std::string::npos);
      } else {
        ++measured;
        EXPECT_TRUE(isRight) << config;
      }
    }
    EXPECT_EQ(measured, 2);
    EXPECT_EQ(rejected, 2);
  }
  std::string tuneError(const ProgramRequest &request) const {
    return request.tune(engine.get(), 30).status().toString();
  }
  std::string createError(const ProgramRequest &request) const {
    return request.create(engine.get(), accelerator().stream()).status().toString();
  }
  uint64_t compiled() const {
    nsa_stats stats = NSA_INIT(nsa_stats);
    EXPECT_EQ(nsa_engine_get_stats(engine.get(), &stats, nullptr), NSA_OK);
    return stats.kernels_compiled;
  }

  static inline const ProgramPairs kValues = {{"columns", "50"}, {"rows", "40"}};
  tools::EngineHandle engine;
};

TEST_F(ProgramReference, WithoutOneTheFirstConfigurationIsTheReference) {
  expectGate(ofText(shifted("")), 0);
  expectGate(ofText(shifted("", /*isWrongCheaper=*/true)), 1);
}

TEST_F(ProgramReference, AnotherProgramRejectsTheFirstConfiguration) {
  scratch.write("plain.tile", kPlain);
  expectGate(ofFile(shifted("reference plain", /*isWrongCheaper=*/true)), 0);
}

TEST_F(ProgramReference, FixedChoicesRejectTheFirstConfiguration) {
  expectGate(ofText(shifted("reference wrong = 0", /*isWrongCheaper=*/true)), 0);
}

// The program is created with its first configuration, which adds 1, and is compared with its reference, which does
// not.
TEST_F(ProgramReference, AComparisonIsWithIt) {
  scratch.write("plain.tile", kPlain);
  const struct {
    const char *clause, *reference, *config;
    double error;
  } cases[] = {{"reference plain", "plain", "", 1},
               {"reference row_tile = 16, wrong = 0", "shifted", "row_tile=16 warps=1 wrong=0", 1},
               {"", "shifted", "row_tile=16 warps=1 wrong=1", 0}};
  for (const auto &[clause, reference, config, error] : cases) {
    SCOPED_TRACE(clause);
    Result<ProgramHandle> program =
        ofFile(shifted(clause, /*isWrongCheaper=*/true)).create(engine.get(), accelerator().stream());
    ASSERT_TRUE(program) << program.status().toString();
    Result<ProgramCall> call = ProgramCall::make(accelerator(), program->get(), shiftedCall());
    ASSERT_TRUE(call) << call.status().toString();
    const Result<nlohmann::json> compared = call->compare();
    ASSERT_TRUE(compared) << compared.status().toString();
    ASSERT_EQ(compared->at("parts").size(), 1U) << compared->dump(2);
    const nlohmann::json &y = compared->at("parts")[0];
    EXPECT_EQ(y.at("definition").value("template", ""), reference) << y.dump(2);
    EXPECT_EQ(y.at("definition").value("config", "none"), config) << y.dump(2);
    EXPECT_EQ(y.value("max_abs", -1.0), error) << y.dump(2);
    EXPECT_EQ(y.value("same_kernel", true), error == 0) << y.dump(2);
    call->expectRight(); // the call itself was run by the program's own kernel
  }
}

// What the reference cannot take is an error of the comparison, too.
TEST_F(ProgramReference, AComparisonNeedsOneThatFits) {
  std::string plain = kPlain;
  replaceOnce(plain, "x[row: rows; place: columns]", "x[row: rows; place: columns + 1]");
  scratch.write("plain.tile", plain);
  Result<ProgramHandle> program = ofFile(shifted("reference plain")).create(engine.get(), accelerator().stream());
  ASSERT_TRUE(program) << program.status().toString();
  Result<ProgramCall> call = ProgramCall::make(accelerator(), program->get(), shiftedCall());
  ASSERT_TRUE(call) << call.status().toString();
  EXPECT_EQ(call->compare().status().toString(), "invalid argument: the reference takes other tensors than the "
                                                 "program: program plain: x.shape = [40, 50]: dimension 1 "
                                                 "must be 51 ('place: columns + 1')");
  scratch.write("plain.tile", "kernel plain\n"); // what was read is what is compared with
  EXPECT_EQ(call->compare().status().error().field, "x.shape");
}

// A reference that fixes its own choices computes with these.
TEST_F(ProgramReference, AReferenceMayFixItsChoices) {
  std::string plain = kPlain;
  replaceOnce(plain, "\n\nfixed", "\nchoice  wrong = 1 | 0\nreference wrong = 0\n\nfixed");
  replaceOnce(plain, "* scale", "* scale + wrong");
  scratch.write("plain.tile", plain);
  expectGate(ofFile(shifted("reference plain")), 0);
}

// A program is compiled without its reference.
TEST_F(ProgramReference, IsCompiledForATuningAlone) {
  scratch.write("plain.tile", kPlain);
  const ProgramRequest request = ofFile(shifted("reference plain"));
  ASSERT_TRUE(request.create(engine.get(), accelerator().stream()));
  EXPECT_EQ(compiled(), 1U);
  ASSERT_TRUE(request.tune(engine.get(), 30));
  EXPECT_EQ(compiled(), 1U + 4U + 1U) << "four candidates and the reference";
}

TEST_F(ProgramReference, ADifferentOneRejectsAll) {
  std::string plain = kPlain;
  replaceOnce(plain, "* scale", "* scale + 2");
  scratch.write("plain.tile", plain);
  const std::string error = tuneError(ofFile(shifted("reference plain")));
  EXPECT_TRUE(error.starts_with("internal error: no candidate is left: 0 did not compile, 4 did not compute the "
                                "reference's result or did not run; first: internal error: y"))
      << error;
}

// What was compared with another reference is another choice.
TEST_F(ProgramReference, IsPartOfTheKey) {
  const ProgramRequest request = ofFile(shifted("reference plain"));
  const auto key = [&] {
    Result<ProgramHandle> program = request.create(engine.get(), accelerator().stream());
    EXPECT_TRUE(program) << program.status().toString();
    return program ? describeProgram(program->get()).dump() : "";
  };
  scratch.write("plain.tile", kPlain);
  const std::string before = key();
  std::string plain = kPlain;
  replaceOnce(plain, "* scale", "* scale * 1.0");
  scratch.write("plain.tile", plain);
  const std::string after = key();
  const auto problem = [](const std::string &text) { return text.substr(text.find("shifted@"), 24); };
  EXPECT_NE(problem(before), problem(after));
  scratch.write("plain.tile", kPlain);
  EXPECT_EQ(problem(key()), problem(before));
}

TEST_F(ProgramReference, ThatIsNotThere) {
  EXPECT_EQ(createError(ofFile(shifted("reference plain"))),
            R"(compile failed: shifted.tile:2:11: error: there is no program 'plain'
reference plain
          ^~~~~
hint: save it as plain.tile in the folder of this file
 (hint: nsa check shifted.tile shows what is wrong))");
  EXPECT_EQ(createError(ofText(shifted("reference plain"))),
            R"(compile failed: program:2:11: error: a text that is no file has no program 'plain' beside it
reference plain
          ^~~~~
hint: fix choices of this program: reference CHOICE = NUMBER
 (hint: save the text as program.tile: nsa check program.tile shows what is wrong))");
  scratch.write("plain.tile", "kernel plain\nlet = 1\n");
  EXPECT_EQ(createError(ofFile(shifted("reference plain"))),
            R"(compile failed: plain.tile:2:5: error: expected a name, found '='
let = 1
    ^
 (hint: nsa check plain.tile shows what is wrong))");
}

TEST_F(ProgramReference, ThatLeadsInACircle) {
  EXPECT_EQ(createError(ofFile(shifted("reference shifted"))),
            R"(compile failed: shifted.tile:2:11: error: a program cannot be its own reference
reference shifted
          ^~~~~~~
hint: fix choices of this program: reference CHOICE = NUMBER
 (hint: nsa check shifted.tile shows what is wrong))");
  std::string plain = kPlain;
  replaceOnce(plain, "\n\nfixed", "\nreference shifted\n\nfixed");
  scratch.write("plain.tile", plain);
  EXPECT_EQ(createError(ofFile(shifted("reference plain"))),
            R"(compile failed: shifted.tile:2:11: error: the reference 'plain' names a reference itself
reference plain
          ^~~~~
plain.tile:2:1: note: it stands here
reference shifted
^~~~~~~~~~~~~~~~~
hint: a reference may fix its choices, and names no program
 (hint: nsa check shifted.tile shows what is wrong))");
}

TEST_F(ProgramReference, ThatTakesOtherArguments) {
  const struct {
    const char *from, *to, *error;
  } cases[] = {
      {"y[row: rows; place: columns]: f32, x", "y[row: rows; place: columns], x",
       R"(compile failed: shifted.tile:11:44: error: tensor 'y' has elements of f32 here, and elements of io in the reference 'plain'
tensor  x[row: rows; place: columns]: f32, y[row: rows; place: columns]: f32
                                           ^
plain.tile:9:9: note: the reference declares it here
tensor  y[row: rows; place: columns], x[row: rows; place: columns]: f32
        ^
 (hint: nsa check shifted.tile shows what is wrong))"},
      {"fixed   columns", "fixed   columns, depth",
       "invalid argument: depth = nothing: the program plain needs a value for 'depth' (hint: it declares 'fixed "
       "depth'; add it to the values, or to the command line as --set depth=NUMBER)"},
      {"store y[row; place] = load x[row; place]", "store x[row; place] = load y[row; place]",
       "invalid argument: reference plain = tensor x: must not be stored to, because the program shifted does not "
       "store to it"},
      {"store y[row; place] = load x[row; place] * scale", "let z = load x[row; place] * scale",
       "invalid argument: reference plain = tensor y: must be stored to, because the program shifted stores to it"},
  };
  for (const auto &[from, to, error] : cases) {
    std::string plain = kPlain;
    replaceOnce(plain, from, to);
    scratch.write("plain.tile", plain);
    EXPECT_EQ(createError(ofFile(shifted("reference plain"))), error);
  }
  // Extents are numbers, which a tuning has.
  std::string plain = kPlain;
  replaceOnce(plain, "x[row: rows; place: columns]", "x[row: rows; place: columns + 1]");
  scratch.write("plain.tile", plain);
  EXPECT_EQ(tuneError(ofFile(shifted("reference plain"))),
            "invalid argument: the reference takes other tensors than the program: program plain: x.shape = [40, 50]: "
            "dimension 1 must "
            "be 51 ('place: columns + 1')");
}

TEST_F(ProgramReference, ThatGivesNoResult) {
  EXPECT_EQ(tuneError(ofText(shifted("reference warps = 2, row_tile = 16"))),
            "unsupported: the reference configuration of the program shifted gives no result: no configuration that is "
            "admitted here has row_tile = 16, warps = 2 (hint: give the clause 'reference' choices that all 'require' "
            "lines admit)");
  const auto error = [&](const std::string &from, const std::string &to) {
    std::string plain = kPlain;
    replaceOnce(plain, from, to);
    scratch.write("plain.tile", plain);
    return tuneError(ofFile(shifted("reference plain")));
  };
  EXPECT_EQ(
      error("load x", "load z"),
      R"(compile failed: the program plain, the reference of shifted, gives no result: plain.tile:12:28: error: unknown name 'z'
store y[row; place] = load z[row; place] * scale
                           ^
 (hint: nsa check plain.tile --set columns=50 shows what is wrong))");
  const std::string unfinished =
      "unsupported: the program plain, the reference of shifted, gives no result: y has elements that are not finite, "
      "or that were not stored (hint: with the drawn numbers of a tuning a reference has to store finite numbers "
      "everywhere)";
  EXPECT_EQ(error("* scale", "* scale / (scale - scale)"), unfinished);
  EXPECT_EQ(error("below columns", "below columns - 1"), unfinished);
}

} // namespace
} // namespace nsa::test
