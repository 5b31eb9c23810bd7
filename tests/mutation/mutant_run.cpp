#include "tests/mutation/mutant_run.h"

#include "compiler/driver/TemplateFiles.h"
#include "tests/mutation/child_process.h"
#include "tools/support/scratch_folder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace nsa::mutation {
namespace {

namespace fs = std::filesystem;

// What a plan's error says when NVRTC or the tile compiler refuses a template (runtime/base/status.h).
constexpr std::string_view kRefused = "compile failed: ";
constexpr std::string_view kOtherArchitecture = "of another architecture: ";
constexpr size_t kDetailLength = 160;

std::string firstLine(std::string text) {
  text.resize(std::min({text.size(), text.find('\n'), kDetailLength}));
  return text;
}

std::string readText(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Status writeTemplates(const std::string &folder, const Mutant *mutant) {
  for (const TemplateFile &file : TemplateFiles::embedded().files()) {
    std::string text = file.text;
    if (mutant && file.path == mutant->file)
      text.replace(text.find(mutant->before), mutant->before.size(), mutant->after);
    const fs::path path = fs::path(folder) / file.path;
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    std::ofstream stream(path, std::ios::binary);
    stream << text;
    stream.close();
    if (!stream)
      return Status::error(ErrorCode::kIoError, "cannot write " + path.string(), "set TMPDIR to a folder with room");
  }
  return Status::ok();
}

// GoogleTest's report of the tests that ran: how many, and what the first failure says.
void readReport(const nlohmann::json &report, const std::string &log, Outcome &outcome) {
  int skipped = 0;
  std::string firstFailed, refusal;
  for (const nlohmann::json &suite : report.value("testsuites", nlohmann::json::array()))
    for (const nlohmann::json &test : suite.value("testsuite", nlohmann::json::array())) {
      ++outcome.tests;
      skipped += test.value("result", "") == "SKIPPED";
      if (!test.contains("failures"))
        continue;
      ++outcome.failed;
      if (firstFailed.empty())
        firstFailed = suite.value("name", "") + "." + test.value("name", "");
      for (const nlohmann::json &failure : test["failures"]) {
        const std::string text = failure.value("failure", "");
        if (const size_t at = text.find(kRefused); at != std::string::npos && refusal.empty())
          refusal = firstLine(text.substr(at));
      }
    }
  if (!refusal.empty()) {
    outcome.verdict = Verdict::kNotCompiled;
    outcome.detail = refusal;
  } else if (outcome.failed > 0) {
    outcome.verdict = Verdict::kKilled;
    outcome.detail = firstFailed;
  } else if (outcome.tests == 0 || skipped > 0) {
    const size_t at = log.find(kOtherArchitecture);
    outcome.verdict = skipped == outcome.tests && at != std::string::npos ? Verdict::kOtherDevice : Verdict::kNotRun;
    outcome.detail = outcome.tests == 0 ? "no test has such a name" : std::to_string(skipped) + " skipped";
  } else {
    outcome.verdict = Verdict::kSurvived;
  }
}

Result<Outcome> run(const Mutant *mutant, std::string_view tests, const TestProgram &program) {
  Result<tools::ScratchFolder> folder = tools::ScratchFolder::make();
  if (!folder)
    return folder.status();
  const std::string templates = folder->file("templates"), report = folder->file("report.json");
  NSA_RETURN_IF_ERROR(writeTemplates(templates, mutant));
  Child child;
  child.program = program.path;
  child.arguments = {"--gtest_filter=" + std::string(tests), "--gtest_output=json:" + report, "--gtest_color=no"};
  child.log = folder->file("log");
  child.limitSeconds = program.limitSeconds;
  // Tests keep nothing that was made of other templates, and draw few cases.
  child.environment = {{"NSA_TEMPLATE_DIR", templates}, {"NSA_TEST_DRAWS", "2"}};
  child.removedPrefix = "NSA_TEST_";
  const Result<ChildEnd> end = runChild(child);
  if (!end)
    return end.status();

  Outcome outcome;
  outcome.seconds = end->seconds;
  const nlohmann::json written = nlohmann::json::parse(readText(report), nullptr, false);
  if (end->isHung) {
    outcome.verdict = Verdict::kHungUnforeseen;
    outcome.detail = "no end after " + std::to_string(static_cast<int>(program.limitSeconds)) + " s";
  } else if (end->signal != 0) {
    outcome.verdict = Verdict::kCrashedUnforeseen;
    outcome.detail = "signal " + std::to_string(end->signal);
  } else if (!written.is_object()) {
    outcome.verdict = Verdict::kNotRun;
    outcome.detail = "exit status " + std::to_string(end->exitCode) + " and no report";
  } else {
    readReport(written, readText(child.log), outcome);
  }
  return outcome;
}

// What the run of one filter tells of the mutant.
void judge(const Mutant &mutant, const std::string &filter, Outcome &outcome) {
  Verdict &verdict = outcome.verdict;
  const bool isCrash = verdict == Verdict::kCrashedUnforeseen, isHang = verdict == Verdict::kHungUnforeseen;
  if (!mutant.equivalent.empty()) {
    if (verdict == Verdict::kSurvived) {
      verdict = Verdict::kEquivalent;
      outcome.detail = mutant.equivalent;
    } else if (verdict == Verdict::kKilled || isCrash || isHang) {
      verdict = Verdict::kNotEquivalent;
    }
  } else if (verdict == Verdict::kSurvived) {
    outcome.detail = "no test of " + filter + " failed";
  } else if (isCrash && mutant.mayCrash) {
    verdict = Verdict::kCrashed;
  } else if (isHang && mutant.mayHang) {
    verdict = Verdict::kHung;
  }
}

} // namespace

std::string_view verdictName(Verdict verdict) {
  switch (verdict) {
  case Verdict::kKilled:
    return "killed";
  case Verdict::kSurvived:
    return "SURVIVED";
  case Verdict::kEquivalent:
    return "equivalent";
  case Verdict::kNotEquivalent:
    return "NOT EQUIVALENT";
  case Verdict::kCrashed:
    return "crashed";
  case Verdict::kHung:
    return "hung";
  case Verdict::kCrashedUnforeseen:
    return "CRASHED";
  case Verdict::kHungUnforeseen:
    return "HUNG";
  case Verdict::kNotCompiled:
    return "NOT COMPILED";
  case Verdict::kNotRun:
    return "NOT RUN";
  case Verdict::kOtherDevice:
    return "other device";
  }
  return "";
}

bool isExpected(Verdict verdict) {
  return verdict == Verdict::kKilled || verdict == Verdict::kEquivalent || verdict == Verdict::kCrashed ||
         verdict == Verdict::kHung || verdict == Verdict::kOtherDevice;
}

std::string ownFolder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

Result<int> occurrences(std::string_view file, std::string_view text) {
  const TemplateFile *found = TemplateFiles::embedded().find(file);
  if (!found)
    return Status::invalid("file", std::string(file), "must be a template");
  int count = 0;
  for (size_t at = found->text.find(text); at != std::string::npos; at = found->text.find(text, at + text.size()))
    ++count;
  return count;
}

Result<Outcome> runMutant(const Mutant &mutant, const TestProgram &program) {
  const Result<int> count = occurrences(mutant.file, mutant.before);
  if (!count)
    return count.status();
  if (*count != 1)
    return Status::invalid("before", std::string(mutant.before),
                           "must stand once in " + std::string(mutant.file) + ", not " + std::to_string(*count) +
                               " times");
  Outcome all;
  for (const std::string &filter : mutant.filters()) {
    NSA_ASSIGN_OR_RETURN(Outcome outcome, run(&mutant, filter, program));
    judge(mutant, filter, outcome);
    outcome.tests += all.tests;
    outcome.failed += all.failed;
    outcome.seconds += all.seconds;
    const bool isForeseen = all.verdict == Verdict::kCrashed || all.verdict == Verdict::kHung;
    if (isForeseen && isExpected(outcome.verdict)) {
      outcome.verdict = all.verdict;
      outcome.detail = all.detail;
    }
    all = std::move(outcome);
    if (!isExpected(all.verdict))
      break;
  }
  return all;
}

Result<Outcome> runUnchanged(std::string_view tests, const TestProgram &program) {
  return run(nullptr, tests, program);
}

} // namespace nsa::mutation
