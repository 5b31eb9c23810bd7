#include "tests/gpu/record/gpu_record.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <map>
#include <sstream>
#include <string_view>

namespace nsa::test {
namespace {

constexpr const char *kHopperTests = "nsa_hopper_attention_test"; // skipped on other architectures

std::string textOf(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What may leave a test out of a run that is evidence.
constexpr std::string_view kMaySkip[] = {
    "of another architecture: ", "left out by NSA_TEST_MAX_TOKENS: ", "NSA_TEST_ANY_VARIANT forces no template"};

bool maySkip(const std::string &reason) {
  return std::ranges::any_of(kMaySkip, [&](std::string_view text) { return reason.find(text) != std::string::npos; });
}

// By test, what GoogleTest wrote of one process.
void forEachTest(const Json &report, const std::function<void(const Json &suite, const Json &test)> &visit) {
  for (const Json &suite : report.value("testsuites", Json::array()))
    for (const Json &test : suite.value("testsuite", Json::array()))
      visit(suite, test);
}

// "": it was not skipped.
std::string skipReasonOf(const Json &test) {
  if (test.value("result", "") != "SKIPPED")
    return "";
  return test.value("skip_reason", "for a reason that the report does not have");
}

struct Counts {
  int suites = 0, passed = 0, skipped = 0, failed = 0, unfinished = 0;
  int64_t errors = 0; // of the sanitizer
  double seconds = 0;

  void add(const Counts &other) {
    suites += other.suites;
    passed += other.passed;
    skipped += other.skipped;
    failed += other.failed;
    unfinished += other.unfinished;
    errors += other.errors;
    seconds += other.seconds;
  }
  void writeTo(Json &row, bool hasErrors) const {
    row["passed"] = passed;
    row["skipped"] = skipped;
    row["failed"] = failed;
    row["unfinished"] = unfinished;
    if (hasErrors)
      row["errors"] = errors;
    row["seconds"] = std::round(seconds * 10) / 10;
  }
};

double secondsOf(const Json &value) {
  return value.is_string() ? std::strtod(value.get<std::string>().c_str(), nullptr) : 0; // "1.5s"
}

Counts countsOf(const Json &report) {
  Counts counts;
  counts.seconds = secondsOf(report.value("time", Json()));
  forEachTest(report, [&](const Json &, const Json &test) {
    if (test.contains("failures"))
      ++counts.failed;
    else if (test.value("result", "") == "SKIPPED")
      ++counts.skipped;
    else if (test.value("result", "") == "COMPLETED")
      ++counts.passed;
  });
  return counts;
}

// A suite, whose tests may have run in several processes.
struct SuiteRun {
  std::string program, name;
  Counts counts;
  std::map<std::string, int> skips; // of how many tests, by reason

  void add(const Json &report) {
    counts.add(countsOf(report));
    forEachTest(report, [&](const Json &, const Json &test) {
      if (const std::string reason = skipReasonOf(test); !reason.empty())
        ++skips[reason];
    });
  }
};

// "ERROR SUMMARY: 2 errors" of compute-sanitizer, or racecheck's "RACECHECK SUMMARY: 1 hazard displayed (1 error, 0
// warnings)". -1: it said neither.
int64_t sanitizerErrors(const std::string &log) {
  int64_t errors = -1;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);)
    if (const size_t at = line.find(" SUMMARY: "); line.starts_with("=========") && at != std::string::npos)
      errors = std::max<int64_t>(errors, 0) +
               std::strtoll(line.c_str() + at + std::string(" SUMMARY: ").size(), nullptr, 10);
  return errors;
}

// Median milliseconds by what was measured. Rows of length benches name operator, heads, tokens and implementation.
using Times = std::map<std::string, double>;

Result<Times> timesOf(const std::filesystem::path &folder, const std::string &name) {
  const Json report = Json::parse(textOf(folder / (name + ".json")), nullptr, false);
  if (report.is_discarded() || !report.contains("results"))
    return Status::error(ErrorCode::kIoError, (folder / (name + ".json")).string() + " is no result of a bench");
  Times times;
  for (const Json &row : report["results"]) {
    const std::string tokens = std::to_string(row.value("tokens", row.value("S", int64_t{0})));
    const std::string key = name + " " + row.value("heads", "") + " " + row.value("op", "") + " " + tokens + " ";
    if (const Json median = row.value("median_ms", Json()); median.is_number())
      times[key + row.value("implementation", "")] = median;
    for (const auto &[field, value] : row.items()) // parts of the whole forward, and a step of decode
      if (value.is_number() &&
          (field == "ms_select" || field == "ms_sel" || field == "ms_cmp" || field == "ms_win" || field == "us_total"))
        times[key + std::to_string(row.value("batch", int64_t{1})) + " " + field] = value;
  }
  return times;
}

} // namespace

Result<Json> makeRecord(const std::string &folder, const RunFacts &facts) {
  const bool sanitized = !facts.sanitizer.empty();
  Json record = {{"machine", facts.machine}, {"seed", facts.seed}};
  if (!facts.maxTokens.empty())
    record["max_tokens"] = facts.maxTokens;
  if (sanitized)
    record["sanitizer"] = {{"tool", facts.sanitizer}, {"version", facts.version}};
  std::istringstream lines(textOf(std::filesystem::path(folder) / "suites"));
  std::vector<SuiteRun> runs;
  std::string number, program, name;
  for (int part = 0, parts = 0; lines >> number >> program >> name >> part >> parts;) {
    auto run = std::ranges::find_if(runs, [&](const SuiteRun &r) { return r.program == program && r.name == name; });
    if (run == runs.end())
      run = runs.insert(run, {.program = program, .name = name, .counts = {.suites = 1}, .skips = {}});
    const std::filesystem::path base = std::filesystem::path(folder) / number;
    const Json report = Json::parse(textOf(base.string() + ".json"), nullptr, false);
    const int64_t errors = sanitized ? sanitizerErrors(textOf(base.string() + ".log")) : 0;
    if (!report.is_discarded())
      run->add(report);
    run->counts.unfinished += report.is_discarded() || errors < 0;
    run->counts.errors += std::max<int64_t>(errors, 0);
  }
  Json suites = Json::array();
  std::map<std::string, Counts> programs;
  for (const SuiteRun &run : runs) {
    Json row = {{"program", run.program}, {"suite", run.name}};
    run.counts.writeTo(row, sanitized);
    for (const auto &[reason, count] : run.skips)
      row["skips"].push_back({{"reason", reason}, {"tests", count}});
    suites.push_back(std::move(row));
    programs[run.program].add(run.counts);
  }
  if (suites.empty())
    return Status::error(ErrorCode::kIoError, folder + "/suites names no suite");
  record["table"] = Json::array();
  for (const char *title : {"tests", "suites", "passed", "skipped", "failed", "unfinished", "errors", "seconds"})
    if (sanitized || std::string(title) != "errors")
      record["table"].push_back({{"title", title}, {"field", title}});
  record["results"] = Json::array();
  for (const auto &[name, counts] : programs) {
    Json row = {{"tests", name}, {"suites", counts.suites}};
    counts.writeTo(row, sanitized);
    record["results"].push_back(std::move(row));
  }
  record["seconds"] = facts.seconds;
  record["suites"] = std::move(suites);
  return record;
}

// Names the facts of a record's machine that are missing.
static void addMissing(std::vector<std::string> &faults, const Json &machine,
                       std::initializer_list<const char *> fields) {
  for (const char *field : fields)
    if (machine.value(field, "").empty())
      faults.push_back(std::string("machine.") + field + " is missing");
}

std::vector<std::string> faultsOf(const Json &record) {
  std::vector<std::string> faults;
  const Json machine = record.value("machine", Json::object());
  const std::string source = machine.value("source", "");
  if (source.empty() || source.starts_with("release-"))
    faults.push_back("machine.source '" + source + "' names no commit");
  if (source.ends_with("-dirty"))
    faults.push_back("machine.source " + source + ": the tree that was built had changes that no commit has");
  addMissing(faults, machine, {"date", "driver", "nvrtc"});
  if (machine.value("device", Json::object()).value("kind", "") != "gpu")
    faults.push_back("machine.device is no GPU");
  if (record.value("seed", "").empty())
    faults.push_back("seed is missing");
  const Json suites = record.value("suites", Json::array());
  if (suites.empty())
    faults.push_back("suites is empty");
  std::map<std::string, int> passed;
  for (const Json &suite : suites) {
    const std::string program = suite.value("program", ""), name = program + " " + suite.value("suite", "");
    passed[program] += suite.value("passed", 0);
    for (const char *field : {"failed", "unfinished", "errors"})
      if (suite.value(field, 0) != 0)
        faults.push_back(name + ": " + field + " " + std::to_string(suite.value(field, 0)));
    if (suite.value("passed", 0) + suite.value("skipped", 0) == 0)
      faults.push_back(name + ": no test ran");
    int explained = 0;
    for (const Json &skip : suite.value("skips", Json::array())) {
      explained += skip.value("tests", 0);
      if (const std::string reason = skip.value("reason", ""); !maySkip(reason))
        faults.push_back(name + ": a test was skipped: " + reason);
    }
    if (explained != suite.value("skipped", 0))
      faults.push_back(name + ": skipped " + std::to_string(suite.value("skipped", 0)) + ", with a reason " +
                       std::to_string(explained));
  }
  std::vector<std::string> wanted = {"nsa_gpu_attention_test", "nsa_gpu_device_test", kHopperTests};
  if (const std::string tool = record.value("sanitizer", Json::object()).value("tool", ""); tool == "memcheck")
    wanted = {"nsa_gpu_attention_test", kHopperTests};
  else if (!tool.empty())
    wanted = {kHopperTests};
  const bool isHopper = machine.value("device", Json::object()).value("target", "") == "sm_90a";
  for (const std::string &program : wanted) {
    if (!passed.contains(program))
      faults.push_back(program + ": no suite of it is recorded");
    else if (passed[program] == 0 && (isHopper || program != kHopperTests || wanted.size() == 1))
      faults.push_back(program + ": no test of it passed");
  }
  return faults;
}

std::vector<std::string> mutantFaultsOf(const Json &record) {
  std::vector<std::string> faults;
  const Json machine = record.value("machine", Json::object());
  addMissing(faults, machine, {"source", "date", "processor"});
  int mutants = 0, unchanged = 0;
  for (const Json &entry : record.value("mutants", Json::array())) {
    const std::string name = entry.value("name", ""), verdict = entry.value("verdict", "");
    const bool isUnchanged = name == "(no change)";
    ++(isUnchanged ? unchanged : mutants);
    const bool isRight =
        isUnchanged ? verdict == "passes"
                    : verdict == "killed" || verdict == "equivalent" || verdict == "crashed" || verdict == "hung";
    if (!isRight)
      faults.push_back(name + ": " + verdict);
  }
  if (mutants == 0)
    faults.push_back("mutants is empty");
  if (unchanged == 0)
    faults.push_back("no tests ran without a change");
  return faults;
}

std::vector<std::string> torchFaultsOf(const Json &record) {
  std::vector<std::string> faults;
  const Json machine = record.value("machine", Json::object());
  addMissing(faults, machine, {"source", "date"});
  const Json results = record.value("results", Json::array());
  if (results.empty())
    faults.emplace_back("results is empty");
  for (const Json &entry : results) {
    const std::string name = entry.value("part", "") + ": " + entry.value("case", "");
    if (!entry.value("within", false))
      faults.push_back(name + ": beyond a limit");
    for (const char *count : {"repeats_with_other_bits", "replays_with_other_bits"})
      if (entry.value(count, 0) != 0)
        faults.push_back(name + ": " + count + " = " + entry[count].dump());
  }
  return faults;
}

Result<SkippedTests> skippedTests(const std::string &file) {
  const Json report = Json::parse(textOf(file), nullptr, false);
  if (!report.is_object())
    return Status::error(ErrorCode::kIoError, file + " is no report of GoogleTest");
  SkippedTests tests;
  forEachTest(report, [&](const Json &suite, const Json &test) {
    if (const std::string reason = skipReasonOf(test); !reason.empty())
      (maySkip(reason) ? tests.allowed : tests.refused)
          .push_back(suite.value("name", "") + "." + test.value("name", "") + ": " + reason);
  });
  return tests;
}

std::string resultsOf(const std::string &root, const std::string &device) {
  std::error_code error;
  for (const auto &folder : std::filesystem::directory_iterator(root, error)) {
    const Json report = Json::parse(textOf(folder.path() / "attention_nsa128.json"), nullptr, false);
    if (report.is_object() &&
        report.value("machine", Json::object()).value("device", Json::object()).value("name", "") == device)
      return folder.path().string();
  }
  return "";
}

Result<std::vector<std::string>> slowerKernels(const std::string &recorded, const std::string &fresh,
                                               std::vector<std::string> &lines) {
  // What is compared, and the peer of the same run: dense attention of torch by cuDNN, or by its own kernel.
  struct Pair {
    const char *file, *kernel, *peerFile, *peer;
  };
  constexpr Pair kPairs[] = {
      {"attention_nsa128", "nsa128 dense 16384 nsa default", "attention_nsa128", "nsa128 dense 16384 torch cudnn"},
      {"attention_nsa128", "nsa128 window 16384 nsa default", "attention_nsa128", "nsa128 window 16384 torch flash"},
      {"attention_nsa128", "nsa128 cmp 16384 nsa default", "attention_nsa128", "nsa128 dense 16384 torch cudnn"},
      {"prefill", "nsa128 nsa 8192 1 ms_select", "prefill", "nsa128 dense 8192 torch cudnn"},
      {"prefill", "nsa128 nsa 8192 1 ms_sel", "prefill", "nsa128 dense 8192 torch cudnn"},
      {"decode", "nsa128  4096 1 us_total", "prefill", "nsa128 dense 8192 torch cudnn"},
  };
  std::vector<std::string> slower;
  for (const Pair &pair : kPairs) {
    double ratios[2] = {};
    for (int which = 0; which < 2; ++which) {
      const std::string &folder = which ? fresh : recorded;
      const Result<Times> own = timesOf(folder, pair.file), peers = timesOf(folder, pair.peerFile);
      if (!own)
        return own.status();
      if (!peers)
        return peers.status();
      const auto kernel = own->find(std::string(pair.file) + " " + pair.kernel);
      const auto peer = peers->find(std::string(pair.peerFile) + " " + pair.peer);
      if (kernel == own->end() || peer == peers->end())
        return Status::error(ErrorCode::kIoError,
                             folder + ": " + (kernel == own->end() ? pair.kernel : pair.peer) + " was not measured");
      ratios[which] = peer->second / kernel->second;
    }
    char text[256];
    std::snprintf(text, sizeof text, "%s, beside %s: %.3g times as fast, recorded %.3g", pair.kernel, pair.peer,
                  ratios[1], ratios[0]);
    lines.push_back(text);
    if (!(ratios[1] >= ratios[0] / 2))
      slower.push_back(lines.back());
  }
  return slower;
}

} // namespace nsa::test
