// What a program of one's own reports: the error has the program's own names, its file, and what the file says.
#include "tests/harness/program_fixture.h"

namespace nsa::test {
namespace {

// y = the number of the column plus the flag.
constexpr const char *kReports = R"(kernel checked
import status

// A flag is negative, so nothing
// of its part is right.
code negative = 100, positive = 50 * 2 + 1

code unexplained = 102
code late = 103 // The flag came too late.
grid    part = parts, 1, 1
threads 32

axis    e = 16
tensor  flags[part: parts]: i32, y[part: parts; e]: f32
scalar  parts: i32

let flag = load flags[part]
report negative at part if flag < 0
report positive at part if flag == 1
report unexplained at part if flag == 2
report late at part if flag == 3
report bad_page at part if flag == 4
report 77 at part if flag == 5
store y[part; iota(e)] = (iota(e) + flag) as f32
)";
constexpr int64_t kParts = 5;

std::string changed(const std::string &from, const std::string &to) {
  std::string text = kReports;
  replaceOnce(text, from, to);
  return text;
}

class ProgramReports : public ProgramTest {
protected:
  void SetUp() override {
    ProgramTest::SetUp();
    if (!IsSkipped())
      engine = engineOf(settings());
  }
  // A call whose third flag is `flag`, and all others 0.
  static Example callOf(double flag) {
    Example example;
    example.of = {"checked", DType::kF32, {}};
    std::vector<double> flags(kParts), y;
    flags[2] = flag;
    for (const double each : flags)
      for (int column = 0; column < 16; ++column)
        y.push_back(column + each);
    example.tensors = {{"flags", DType::kI32, {kParts}, false, flags, kParts},
                       {"y", DType::kF32, {kParts, 16}, true, y, 16}};
    return example;
  }
  static ProgramRequest requestOf(const std::string &text) {
    return ProgramRequest::ofText(text, {{"parts", std::to_string(kParts)}});
  }
  std::string runError(const nsa_program *program, double flag) const {
    Result<ProgramCall> call = ProgramCall::make(accelerator(), program, callOf(flag));
    EXPECT_TRUE(call) << call.status().toString();
    const std::string error = call ? call->run().toString() : "";
    if (call)
      call->expectRight(); // a report ends nothing
    return error;
  }
  std::string createError(const std::string &text) const {
    return requestOf(text).create(engine.get(), accelerator().stream()).status().toString();
  }
  tools::EngineHandle engine;
};

TEST_F(ProgramReports, ACodeIsNamedAsTheProgramNamesIt) {
  Result<ProgramHandle> made = requestOf(kReports).create(engine.get(), accelerator().stream());
  ASSERT_TRUE(made) << made.status().toString();
  const auto error = [&](double flag) { return runError(made->get(), flag); };
  EXPECT_EQ(error(-3),
            "device error: status = negative at 2: the program checked (program:6) reported it: A flag is negative, so "
            "nothing of its part is right. (hint: 'report negative' in program or its libraries says when)");
  EXPECT_EQ(error(0), "ok") << "a report is told once";
  EXPECT_EQ(error(1),
            "device error: status = positive at 2: the program checked (program:6) reported it: A flag is negative, so "
            "nothing of its part is right. (hint: 'report positive' in program or its libraries says when)");
  EXPECT_EQ(error(2), "device error: status = unexplained at 2: the program checked (program:8) reported it (hint: "
                      "'report unexplained' in program or its libraries says when)");
  EXPECT_EQ(error(3), "device error: status = late at 2: the program checked (program:9) reported it: The flag came "
                      "too late. (hint: 'report late' in program or its libraries says when)");
  // A code of the library that ships has its name, and not the text of an operator's plan.
  EXPECT_EQ(error(4), "device error: status = bad_page at 2: the program checked (program) reported it (hint: 'report "
                      "bad_page' in program or its libraries says when)");
  EXPECT_EQ(error(5), "device error: status = 77 at 2: the program checked (program) reported a code that it does not "
                      "declare (hint: declare it: code name = 77)");
}

// A number that the library `status` uses, too, is the program's own.
TEST_F(ProgramReports, AnOwnCodeGoesBeforeACodeOfTheLibrary) {
  Result<ProgramHandle> made =
      requestOf(changed("late = 103", "late = 6")).create(engine.get(), accelerator().stream());
  ASSERT_TRUE(made) << made.status().toString();
  EXPECT_EQ(runError(made->get(), 3),
            "device error: status = late at 2: the program checked (program:9) reported it: The flag came too late. "
            "(hint: 'report late' in program or its libraries says when)");
}

TEST_F(ProgramReports, ACodeOfAnOwnLibraryNamesTheFileOfTheLibrary) {
  scratch.write("library/limits.tile", "library limits\n\n// The flag is above the limit.\ncode too_large = 200\n");
  std::string text = changed("import status", "import status, limits");
  replaceOnce(text, "report positive at part if flag == 1", "report too_large at part if flag > 9");
  const ProgramRequest request =
      ProgramRequest::ofFile(scratch.write("checked.tile", text), {{"parts", std::to_string(kParts)}});
  Result<ProgramHandle> made = request.create(engine.get(), accelerator().stream());
  ASSERT_TRUE(made) << made.status().toString();
  EXPECT_EQ(runError(made->get(), 10),
            "device error: status = too_large at 2: the program checked (limits.tile:4) reported it: The flag is above "
            "the limit. (hint: 'report too_large' in checked.tile or its libraries says when)");
  EXPECT_EQ(runError(made->get(), -1),
            "device error: status = negative at 2: the program checked (checked.tile:6) reported it: A flag is "
            "negative, so nothing of its part is right. (hint: 'report negative' in checked.tile or its libraries says "
            "when)");
}

// Candidates are measured on flags of 0, and a program that reports there has no right result.
TEST_F(ProgramReports, ATuningThatReportsNamesTheCode) {
  const Status status = requestOf(changed("flag == 3", "flag == 0")).tune(engine.get(), 5).status();
  EXPECT_NE(status.toString().find("status = late at "), std::string::npos) << status.toString();
  EXPECT_NE(status.toString().find("the program checked (program:9) reported it: The flag came too late."),
            std::string::npos)
      << status.toString();
}

TEST_F(ProgramReports, CodesThatCannotBeToldApart) {
  EXPECT_EQ(createError(changed("late = 103", "late = 100")),
            "invalid argument: code late = 100: is the number of the code 'negative' (hint: reports are told apart by "
            "their numbers)");
  EXPECT_EQ(createError(changed("late = 103", "late = 103 - 103")),
            "invalid argument: code late = 0: must be an integer of 32 bits that is not 0 (hint: 0 says that nothing "
            "was reported)");
  EXPECT_EQ(createError(changed("late = 103", "late = 1 * 4294967297")),
            "invalid argument: code late = 4294967297: must be an integer of 32 bits that is not 0 (hint: 0 says that "
            "nothing was reported)");
  EXPECT_EQ(createError(changed("late = 103", "late = parts")),
            "invalid argument: code late = parts: must be a constant");
}

} // namespace
} // namespace nsa::test
