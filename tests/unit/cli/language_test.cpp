// `nsa check` and `nsa fmt` as a user meets them: exit codes, where texts go, and which files change.
#include "tests/unit/cli/program_fixture.h"

#include <nlohmann/json.hpp>

namespace nsa::tools {
namespace {

class LanguageVerbs : public Program {
protected:
  std::string compiler() const { return " --compiler " NSA_COMPILER_LIBRARY " "; }
  std::string good = scratch.write(
      "good.tile", "kernel good\n\ngrid    1\nthreads 32\naxis    row = 16\ntensor  x[time]: f32, y[time]: f32\n\n"
                   "let at = iota(row) below 9\nstore y[at] = load x[at] * 2\n");
  std::string bad = scratch.write("bad.tile", "kernel bad\n\ngrid    1\nthreads 32\nlet a = b\n");
  std::string crooked = scratch.write("crooked.tile", "kernel crooked\nlet a=1\n");
};

TEST_F(LanguageVerbs, CheckSaysOnStdoutWhatIsRightAndOnStderrWhatIsNot) {
  const Outcome right = run("check" + compiler() + good);
  EXPECT_EQ(right.code, 0) << right.err;
  EXPECT_EQ(right.out, good + ": 21 programs are right, for cpu, sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_120a\n");
  EXPECT_EQ(right.err, "");
  const Outcome both = run("check" + compiler() + bad + " " + good);
  EXPECT_EQ(both.code, 1);
  EXPECT_EQ(both.out, right.out);
  EXPECT_EQ(both.err, bad + ":5:9: error: unknown name 'b'\nlet a = b\n        ^\n");
}

TEST_F(LanguageVerbs, CheckExplainsAndReports) {
  const Outcome explained = run("check --explain --target sm_80" + compiler() + good);
  EXPECT_EQ(explained.code, 0);
  EXPECT_EQ(
      explained.out,
      "sm_80, dtype=bf16\nat: i32[row] = iota(row); exists where at < 9\ny_tile: f32[row]; exists where at < 9\n");
  const Outcome json = run("check --json" + compiler() + good + " " + bad);
  EXPECT_EQ(json.code, 1);
  const nlohmann::json report = nlohmann::json::parse(json.out);
  EXPECT_EQ(report["files"].size(), 2U);
  EXPECT_EQ(report["files"][0]["file"], good);
  EXPECT_EQ(report["files"][0]["ok"], true);
  EXPECT_EQ(report["files"][1]["ok"], false);
  EXPECT_NE(report["files"][1]["messages"].get<std::string>().find("unknown name 'b'"), std::string::npos);
}

TEST_F(LanguageVerbs, CheckRefusesWhatItCannotRead) {
  expectFailure("check" + compiler() + scratch.file("absent.tile"),
                "absent.tile: cannot be read: No such file or directory");
  expectFailure("check --set a=1" + compiler() + good, "a = 1: is neither a choice nor a fixed value");
  expectFailure("check --set a=1 --set a=2" + compiler() + good, "names a value that was set before");
  expectUsageError("check --set a" + compiler() + good, "'a' is not NAME=VALUE");
  expectUsageError("check --target sm_75" + compiler() + good, "--target");
  expectUsageError("check", "FILE is required");
  expectFailure("check " + good, "absent.so");
}

TEST_F(LanguageVerbs, FmtChangesWhatIsLaidOutOtherwise) {
  const Outcome checked = run("fmt --check" + compiler() + good + " " + crooked);
  EXPECT_EQ(checked.code, 1);
  EXPECT_EQ(checked.out, "");
  EXPECT_EQ(checked.err, crooked + ":2: is not laid out as `nsa fmt` does it\n");
  EXPECT_EQ(readFile(crooked), "kernel crooked\nlet a=1\n");
  const Outcome written = run("fmt" + compiler() + good + " " + crooked);
  EXPECT_EQ(written.code, 0) << written.err;
  EXPECT_EQ(readFile(crooked), "kernel crooked\nlet a = 1\n");
  EXPECT_EQ(run("fmt --check" + compiler() + good + " " + crooked).code, 0);
}

TEST_F(LanguageVerbs, FmtLeavesAFileWithErrorsAlone) {
  const std::string open = scratch.write("open.tile", "kernel open\nlet a=(\n");
  const Outcome outcome = run("fmt" + compiler() + open + " " + crooked);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err.substr(0, outcome.err.find('\n')),
            open + ":2:8: error: expected an expression, found the end of the file");
  EXPECT_EQ(readFile(open), "kernel open\nlet a=(\n");
  EXPECT_EQ(readFile(crooked), "kernel crooked\nlet a = 1\n");
  expectFailure("fmt" + compiler() + scratch.file("absent.tile"), "absent.tile");
  expectUsageError("fmt", "FILE is required");
}

} // namespace
} // namespace nsa::tools
