// The scripts of the bundle on a machine without a GPU: what they understand, which tests they select, what they make
// of steps that fail, and whether a signed pack is told from a changed one, on the CPU.
#include "tests/harness/scratch.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <sstream>
#include <sys/wait.h>

namespace nsa::test {
namespace {

namespace fs = std::filesystem;

constexpr const char *kScript = NSA_SOURCE_DIR "/tests/gpu/run-gpu-tests";

struct Outcome {
  int code = -1;
  std::string text; // of stdout and stderr
};

class RunGpuTests : public ::testing::Test {
protected:
  void SetUp() override {
    fs::create_directories(folder.file("libexec"));
    fs::create_directory_symlink(NSA_PROGRAMS, folder.file("libexec/nsa"));
    useScript(readFile(kScript));
  }
  void useScript(const std::string &text) const {
    folder.write("run-gpu-tests", text);
    fs::permissions(folder.file("run-gpu-tests"), fs::perms::owner_all);
  }
  // Programs that list the tests of the file `tests`, and else do nothing but append their name, arguments and part of
  // the tests to `calls`. They fail when the file `fails` names them.
  void useStubs() {
    fs::remove(folder.file("libexec/nsa"));
    const std::string stub = "#!/bin/sh\n"
                             "name=$(basename \"$0\")\n"
                             "case \"$*\" in *--gtest_list_tests*) exec cat '" +
                             folder.file("tests") +
                             "' ;; esac\n"
                             "echo \"$name $*${GTEST_TOTAL_SHARDS:+ part $GTEST_SHARD_INDEX of $GTEST_TOTAL_SHARDS}"
                             "${NSA_TEST_CACHE:+ shares kernels}\" >>'" +
                             folder.file("calls") + "'\necho \"$NSA_TEST_CACHE\" >>'" + folder.file("caches") +
                             "'\n! grep -qx \"$name\" '" + folder.file("fails") + "'\n";
    folder.write("fails", "");
    folder.write("calls", "");
    folder.write("tests", "Suite.\n  Test\n");
    for (const char *name :
         {"libexec/nsa/nsa_gpu_attention_test", "libexec/nsa/nsa_hopper_attention_test",
          "libexec/nsa/nsa_decode_step_test", "libexec/nsa/nsa_gpu_device_test", "libexec/nsa/nsa_example_decode",
          "libexec/nsa/nsa_gpu_record", "libexec/nsa/nsa_mutate", "libexec/nsa/check-signed-pack",
          "libexec/nsa/torch_gradients.py", "tools/compute-sanitizer"}) {
      folder.write(name, stub);
      fs::permissions(folder.file(name), fs::perms::owner_all);
    }
    // Runs what it is told to run.
    folder.write("tools/compute-sanitizer", "#!/bin/sh\n[ \"$1\" = --version ] && echo 'Version 2.0' && exit 0\n"
                                            "shift 4\n\"$@\"\n");
  }
  Outcome run(const std::string &arguments) const { return runCommand("run-gpu-tests", arguments); }
  Outcome runCommand(const std::string &program, const std::string &arguments) const {
    const std::string command = "cd '" + folder.path() + "' && PATH='" + folder.file("tools") +
                                "':\"$PATH\" JOBS=2 env -u NSA_TEST_DRAWS -u NSA_TEST_MAX_TOKENS '" +
                                folder.file(program) + "' " + arguments + " >output 2>&1";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, folder.read("output")};
  }
  void expectOutcome(const std::string &arguments, int code, const std::string &text) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.text;
    EXPECT_NE(outcome.text.find(text), std::string::npos) << arguments << "\n" << outcome.text;
  }

  Scratch folder;
};

TEST_F(RunGpuTests, EachSelectionNamesTests) {
  for (const char *arguments :
       {"--list", "--sanitizer memcheck --list", "--sanitizer synccheck --list", "--sanitizer racecheck --list"}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.text;
    EXPECT_GT(std::ranges::count(outcome.text, '\n'), 20) << arguments;
  }
}

// A program has as many drawn cases as it is told, so it must be told before it lists them.
TEST_F(RunGpuTests, ASanitizerRunsThreeDrawnCases) {
  const auto drawnCases = [&](const std::string &arguments) {
    const std::string text = run(arguments).text, name = "nsa_gpu_attention_test Drawn/DrawnGeometries.";
    int count = 0;
    for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += name.size())
      ++count;
    return count;
  };
  EXPECT_GT(drawnCases("--list"), 3);
  EXPECT_EQ(drawnCases("--sanitizer memcheck --list"), 3);
}

TEST_F(RunGpuTests, RowsThatAreCopiedAreNotRacechecked) {
  for (const char *part : {"gaps_", "AreCopied"}) {
    expectOutcome("--sanitizer synccheck --list", 0, part);
    const std::string listed = run("--sanitizer racecheck --list").text;
    EXPECT_EQ(listed.find(part), std::string::npos) << listed;
  }
}

TEST_F(RunGpuTests, ASelectionThatNamesNoTestFails) {
  const std::string whole = readFile(kScript);
  const auto expectTold = [&](const std::string &from, const std::string &to, const std::string &text) {
    std::string changed = whole;
    for (size_t at = 0; (at = changed.find(from, at)) != std::string::npos; at += to.size())
      changed.replace(at, from.size(), to);
    ASSERT_NE(changed, whole);
    useScript(changed);
    expectOutcome("--sanitizer racecheck --list", 1, text);
  };
  expectTold("*gaps_*", "*no_such_*", "racecheck: *no_such_* names no test");
  // A test of a suite that does not run.
  expectTold("*gaps_*", "*ThatTheTuner*", "racecheck: *ThatTheTuner* names no test");
  expectTold("HopperDecode'", "HopperDecoder'", "racecheck: HopperDecoder.*-*/fp16");
  expectTold("*/fp16:*Repeats*", "*", "racecheck: no test of nsa_hopper_attention_test is left");
}

TEST_F(RunGpuTests, AProgramThatDoesNotListItsTestsFailsTheRun) {
  useStubs();
  folder.write("libexec/nsa/nsa_hopper_attention_test", "#!/bin/sh\nexit 3\n");
  expectOutcome("--list", 1, "failed: the list of nsa_hopper_attention_test (exit status 3)");
  expectOutcome("--no-speed", 1, "failed: the list of nsa_hopper_attention_test (exit status 3)");
}

TEST_F(RunGpuTests, WhatIsNotUnderstoodIsRefused) {
  useStubs();
  const std::pair<const char *, const char *> cases[] = {
      {"--sanitizer initcheck", "--sanitizer initcheck: must be memcheck, racecheck or synccheck"},
      {"--record", "--record needs a value"},
      {"--evidence", "--evidence needs a value"},
      {"--steps tests", "--steps goes with --evidence"},
      {"--evidence e --steps tests,speed", "--steps speed: must be of tests,torch,mutants,"},
      {"--evidence e --steps tests,", "--steps tests,: must name steps, with one comma between two"},
      {"--evidence e --steps ,", "--steps ,: must name steps, with one comma between two"},
      {"--evidence e --record r", "--evidence goes with --steps alone"},
      {"--evidence e --sanitizer memcheck", "--evidence goes with --steps alone"},
      {"--evidence e --list", "--evidence goes with --steps alone"},
      {"--evidence e --gtest_filter=A.*", "--evidence goes with --steps alone"},
      {"--list --gtest_filter=A.*", "--gtest_filter=A.*: goes without --record, --sanitizer and --list"},
  };
  for (const auto &[arguments, text] : cases)
    expectOutcome(arguments, 2, text);
  EXPECT_EQ(folder.read("calls"), "") << "nothing may run";
}

TEST_F(RunGpuTests, EvidenceRunsEveryStep) {
  useStubs();
  expectOutcome("--evidence here", 0, "== signed: exit status 0, ");
  const std::string calls = folder.read("calls"), root = folder.path();
  for (const std::string &call : std::vector<std::string>{
           "nsa_gpu_device_test --any-skip-skips --gtest_filter=Suite.* ", " here/gpu_tests.json ",
           "torch_gradients.py " + root + " --record here/gpu_torch.json\n",
           "nsa_mutate --device gpu -j 2 --json here/mutants.json\n", " here/gpu_memcheck.json ",
           " here/gpu_synccheck.json ", " here/gpu_racecheck.json ",
           "check-signed-pack " + root + "/bin/nsa " + root + "/share/nsa/packs/nvidia-h200.nsapack " + root +
               "/share/nsa/packs/nvidia-h200.public cuda:0 " + root + "/libexec/nsa/configs/nsa128.json 1280\n"})
    EXPECT_NE(calls.find(call), std::string::npos) << call << " is not among\n" << calls;
  EXPECT_NE(calls.find(" racecheck 2.0\n"), std::string::npos) << calls;
  // The steps that run tests share one file of kernels. What runs alone has none, and neither have the other steps.
  std::istringstream lines(folder.read("caches"));
  std::set<std::string> caches;
  for (std::string line; std::getline(lines, line);)
    caches.insert(line);
  EXPECT_EQ(caches.size(), 2u);
  EXPECT_TRUE(caches.contains(""));
  EXPECT_EQ(run("--evidence here").text.find("exit status 1"), std::string::npos);
}

// A part is a process, and every part has a test. What runs alone is not split, and under a sanitizer a suite as small
// as these is split only if its tests compile kernels.
TEST_F(RunGpuTests, ASuiteIsSplitIntoPartsThatRunItsTests) {
  useStubs();
  std::string tests = "OperatorTest.\n  A\n  B\nFew.\n  A\n  B\n  C\nManyElements.\n  A\nMany.\n";
  for (int i = 0; i < 30; ++i)
    tests += "  T" + std::to_string(i) + "\n";
  folder.write("tests", tests);
  EXPECT_EQ(run("--no-speed").code, 0);
  std::string calls = folder.read("calls");
  const auto expectParts = [&](const std::string &program, const std::string &suite, int parts, const char *end) {
    for (int part = 0; part <= parts; ++part) { // one more than there are
      const std::string before = "nsa_" + program + "_test --any-skip-skips --gtest_filter=" + suite + ".* ",
                        after = " part " + std::to_string(part) + " of " + std::to_string(parts) + end + "\n";
      int found = 0;
      std::istringstream lines(calls);
      for (std::string line; std::getline(lines, line);)
        found += line.starts_with(before) && (line + "\n").ends_with(after);
      EXPECT_EQ(found, part < parts) << before << after << calls;
    }
  };
  for (const char *program : {"gpu_attention", "hopper_attention"}) {
    expectParts(program, "Few", 3, " shares kernels");
    expectParts(program, "Many", 8, " shares kernels");
    expectParts(program, "OperatorTest", 1, "");
  }
  expectParts("gpu_device", "Many", 1, "");
  EXPECT_NE(calls.substr(0, calls.find('\n')).find("=ManyElements.* "), std::string::npos) << calls;
  folder.write("calls", "");
  EXPECT_EQ(run("--sanitizer memcheck").code, 0);
  calls = folder.read("calls");
  EXPECT_NE(calls.find("--gtest_filter=Many.*-"), std::string::npos) << calls;
  std::istringstream lines(calls);
  int split = 0;
  for (std::string line; std::getline(lines, line);)
    if (line.find(" of 8") != std::string::npos) {
      EXPECT_TRUE(line.starts_with("nsa_decode_step_test ")) << line;
      ++split;
    }
  EXPECT_EQ(split, 8) << calls;

  folder.write("fails", "nsa_hopper_attention_test\n");
  expectOutcome("--no-speed", 1, "failed: nsa_hopper_attention_test Many, part 8 of 8 (exit status 1)");
}

TEST_F(RunGpuTests, AStepThatFailsFailsTheRunAndStopsNoOther) {
  useStubs();
  folder.write("fails", "nsa_mutate\n");
  expectOutcome("--evidence here --steps mutants,signed", 1, "== mutants: exit status 1, ");
  EXPECT_NE(run("--evidence here --steps mutants,signed").text.find("== signed: exit status 0, "), std::string::npos);
  folder.write("fails", "nsa_hopper_attention_test\n");
  expectOutcome("--evidence here --steps racecheck", 1, "failed: nsa_hopper_attention_test Suite (exit status 1)");
  expectOutcome("--evidence here --steps mutants", 0, "== mutants: exit status 0, ");
  folder.write("calls", "");
  expectOutcome("--evidence here --steps signed", 0, "== signed: exit status 0, ");
  EXPECT_EQ(folder.read("calls").find("nsa_mutate"), std::string::npos);
}

// A pack of CPU kernels and its signature, as the project's pack has GPU kernels and one.
class SignedPack : public RunGpuTests {
protected:
  void SetUp() override {
    fs::copy_file(NSA_SOURCE_DIR "/tests/gpu/check-signed-pack", folder.file("check-signed-pack"));
    folder.write("nsa", "#!/bin/sh\nexec env NSA_CACHE_PACKS=none NSA_CACHE_DIR='" + folder.path() +
                            "' '" NSA_PROGRAM "' \"$@\"\n");
    for (const char *name : {"nsa", "check-signed-pack"})
      fs::permissions(folder.file(name), fs::perms::owner_all);
    folder.write("config.json", R"({"query_heads": 2, "kv_heads": 1, "qk_dim": 64, "v_dim": 64, "dtype": "fp32"})");
    folder.write("other.json", R"({"query_heads": 2, "kv_heads": 2, "qk_dim": 32, "v_dim": 32, "dtype": "fp32"})");
    for (const char *arguments :
         {"generate --op nsa --config config.json --seqlen-k 96 --output input.safetensors",
          "run --op nsa --config config.json --input input.safetensors --output out.safetensors --device cpu --cache "
          "kernels.db",
          "cache export signed.nsapack --cache kernels.db", "cache export unsigned.nsapack --cache kernels.db",
          "cache keygen own", "cache keygen other", "cache sign signed.nsapack --key own.secret"}) {
      const Outcome outcome = runCommand("nsa", arguments);
      ASSERT_EQ(outcome.code, 0) << arguments << "\n" << outcome.text;
    }
  }
  Outcome check(const std::string &pack, const std::string &key, const std::string &config = "config.json") const {
    return runCommand("check-signed-pack", "'" NSA_PROGRAM "' " + pack + " " + key + " cpu " + config + " 96");
  }
};

TEST_F(SignedPack, ServesAndItsChangedCopyDoesNot) {
  const Outcome outcome = check("signed.nsapack", "own.public");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  std::string expected;
  for (const std::string verb : {"verify", "doctor", "run", "merge", "export"})
    expected += "signed: " + verb + " works\n";
  EXPECT_TRUE(outcome.text.starts_with(expected)) << outcome.text;
  for (const std::string part :
       {"verify refuses it, exit status 1: ", "doctor refuses it, exit status 1: ", "run refuses it, exit status 1: ",
        "merge refuses it, exit status 1: ", "export refuses it, exit status 1: "})
    EXPECT_NE(outcome.text.find("changed: " + part), std::string::npos) << outcome.text;
}

// A program of which one verb always works. The true one has to stand in the same folder: packs are looked for from
// there.
TEST_F(SignedPack, AVerbThatTakesTheChangedCopyFails) {
  for (const std::string verb : {"verify", "doctor", "run", "merge", "export"}) {
    folder.write("lenient", "#!/bin/sh\nfor word in \"$@\"; do [ \"$word\" = " + verb +
                                " ] && exit 0; done\ncp -n '" NSA_PROGRAM "' \"$0-true\"\nexec \"$0-true\" \"$@\"\n");
    fs::permissions(folder.file("lenient"), fs::perms::owner_all);
    const Outcome outcome = runCommand("check-signed-pack", "lenient signed.nsapack own.public cpu config.json 96");
    EXPECT_EQ(outcome.code, 1) << outcome.text;
    const bool findsPlaces = verb == "verify"; // in the middle of the pack
    EXPECT_NE(outcome.text.find("changed: " + (findsPlaces ? "verify FOUND NONE" : verb + " WORKS, and must not")),
              std::string::npos)
        << outcome.text;
  }
}

TEST_F(SignedPack, WithoutItsSignatureOrItsKernelsFails) {
  for (const auto &[pack, key] : {std::pair("unsigned.nsapack", "own.public"), {"signed.nsapack", "other.public"}}) {
    const Outcome outcome = check(pack, key);
    EXPECT_EQ(outcome.code, 1) << pack << "\n" << outcome.text;
    for (const std::string verb : {"verify", "doctor", "run", "merge", "export"})
      EXPECT_NE(outcome.text.find("signed: " + verb + " FAILED\n"), std::string::npos) << pack << "\n" << outcome.text;
  }
  const Outcome outcome = check("signed.nsapack", "own.public", "other.json");
  EXPECT_EQ(outcome.code, 1) << outcome.text;
  EXPECT_NE(outcome.text.find("cache miss: "), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("signed: run FAILED\n"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("signed: merge works\n"), std::string::npos) << outcome.text;
}

TEST_F(SignedPack, AFileThatIsMissingIsNamed) {
  const Outcome missing = check("none.nsapack", "own.public");
  EXPECT_EQ(missing.code, 2);
  EXPECT_NE(missing.text.find("check-signed-pack: none.nsapack: no such file"), std::string::npos) << missing.text;
  EXPECT_EQ(runCommand("check-signed-pack", "a b").code, 2);
}

} // namespace
} // namespace nsa::test
