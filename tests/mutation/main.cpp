// nsa_mutate: changes the templates in the ways of the table, one at a time, and runs the tests that must notice.
// Exit codes: 0 each mutant was noticed, or the table says why it cannot be; 1 one was not, or the tests fail without a
// change; 2 not understood.
#include "bench/measure/machine_facts.h"
#include "tests/mutation/mutant_run.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

namespace nsa::mutation {
namespace {

constexpr int kFailure = 1, kUsage = 2;

struct Flags {
  std::string device = "cpu", filter, json;
  int jobs = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  double limitSeconds = 300;
  bool all = false, list = false;
};

// A mutant, or the templates as they are.
struct Trial {
  std::optional<Mutant> mutant;
  std::string program, tests;
  Outcome outcome;
  Status status = Status::ok();

  std::string name() const { return mutant ? std::string(mutant->name) : "(no change)"; }
  std::string file() const { return mutant ? std::string(mutant->file) : program; }
  bool isRight() const {
    return status.isOk() &&
           (mutant ? isExpected(outcome.verdict)
                   : outcome.verdict == Verdict::kSurvived || outcome.verdict == Verdict::kOtherDevice);
  }
  std::string verdict() const {
    if (!status.isOk())
      return "ERROR";
    return std::string(!mutant && outcome.verdict == Verdict::kSurvived ? "passes" : verdictName(outcome.verdict));
  }
  std::string detail() const { return status.isOk() ? outcome.detail : status.toString(); }
};

// The mutants that are asked for, and behind them all of their tests without a change, a program's at a time: a test
// that fails anyway notices nothing.
std::vector<Trial> trialsOf(const Flags &flags) {
  std::vector<Trial> trials;
  std::map<std::string, std::set<std::string>> filters;
  for (const Mutant &mutant : allMutants()) {
    const bool runsHere = mutant.needsGpu() ? flags.device == "gpu" : flags.device == "cpu" || flags.all;
    if (!runsHere || mutant.name.find(flags.filter) == std::string_view::npos)
      continue;
    const std::string program = mutant.program(flags.device);
    trials.push_back({.mutant = mutant, .program = program, .tests = std::string(mutant.tests), .outcome = {}});
    for (const std::string &filter : mutant.filters())
      filters[program].insert(filter);
  }
  for (const auto &[program, ofProgram] : filters) {
    std::string all;
    for (const std::string &filter : ofProgram)
      all += (all.empty() ? "" : ":") + filter;
    trials.push_back({.mutant = std::nullopt, .program = program, .tests = all, .outcome = {}});
  }
  return trials;
}

void runAll(std::vector<Trial> &trials, const Flags &flags) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  size_t done = 0;
  const auto work = [&] {
    // The longest one first.
    for (size_t i = next++; i < trials.size(); i = next++) {
      Trial &trial = trials[trials.size() - 1 - i];
      TestProgram own = {.path = ownFolder() + "/" + trial.program, .limitSeconds = flags.limitSeconds};
      if (!trial.mutant)
        own.limitSeconds *= static_cast<double>(trials.size()); // all tests of all mutants
      Result<Outcome> outcome = trial.mutant ? runMutant(*trial.mutant, own) : runUnchanged(trial.tests, own);
      if (outcome)
        trial.outcome = std::move(*outcome);
      else
        trial.status = outcome.status();
      const std::scoped_lock lock(mutex);
      std::fprintf(stderr, "[%zu/%zu] %s: %s, %.1f s\n", ++done, trials.size(), trial.name().c_str(),
                   trial.verdict().c_str(), trial.outcome.seconds);
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < flags.jobs; ++i)
    threads.emplace_back(work);
}

void printTable(const std::vector<Trial> &trials) {
  size_t width = 0;
  for (const Trial &trial : trials)
    width = std::max(width, trial.name().size());
  for (const Trial &trial : trials)
    std::printf("%-14s  %-*s  %-28s  %3d of %3d tests failed  %s\n", trial.verdict().c_str(), static_cast<int>(width),
                trial.name().c_str(), trial.file().c_str(), trial.outcome.failed, trial.outcome.tests,
                trial.detail().c_str());
}

// How many of each verdict.
std::map<std::string, int> countsOf(const std::vector<Trial> &trials) {
  std::map<std::string, int> counts;
  for (const Trial &trial : trials)
    if (trial.mutant)
      ++counts[trial.verdict()];
  return counts;
}

Result<nlohmann::json> machineOf(const std::string &device) {
  tools::EngineSettings settings;
  settings.device = device == "gpu" ? "cuda:0" : device;
  Result<tools::EngineHandle> engine = tools::createEngine(tools::withNothingStored(settings));
  if (!engine)
    return engine.status();
  return bench::machineFacts(engine->get());
}

Status writeJson(const std::string &path, const std::vector<Trial> &trials, const Flags &flags) {
  const Result<nlohmann::json> machine = machineOf(flags.device);
  if (!machine)
    return machine.status();
  nlohmann::ordered_json report = {{"machine", *machine}, {"device", flags.device}, {"counts", countsOf(trials)}};
  for (const Trial &trial : trials) {
    nlohmann::ordered_json entry = {{"name", trial.name()}, {"file", trial.file()}};
    if (trial.mutant)
      entry["operators"] = trial.mutant->operators;
    entry.update({{"verdict", trial.verdict()},
                  {"tests", trial.outcome.tests},
                  {"failed", trial.outcome.failed},
                  {"seconds", trial.outcome.seconds},
                  {"detail", trial.detail()}});
    report["mutants"].push_back(std::move(entry));
  }
  std::ofstream file(path);
  file << report.dump(2) << "\n";
  file.close();
  return file ? Status::ok() : Status::error(ErrorCode::kIoError, "cannot write " + path, "give --json another path");
}

int mutate(const Flags &flags) {
  std::vector<Trial> trials = trialsOf(flags);
  if (trials.empty()) {
    std::fprintf(stderr, "nsa_mutate: no mutant for the device %s has '%s' in its name; --list has them all\n",
                 flags.device.c_str(), flags.filter.c_str());
    return kUsage;
  }
  if (flags.list) {
    for (const Trial &trial : trials)
      if (trial.mutant)
        std::printf("%s: %s of %s, for %s\n", trial.name().c_str(), trial.file().c_str(),
                    std::string(trial.mutant->operators).c_str(), trial.tests.c_str());
    return 0;
  }
  runAll(trials, flags);
  printTable(trials);
  std::string summary;
  for (const auto &[verdict, count] : countsOf(trials))
    summary += (summary.empty() ? "" : ", ") + std::to_string(count) + " " + verdict;
  const bool isRight = std::ranges::all_of(trials, &Trial::isRight);
  std::printf("%td mutants on %s: %s; %s\n",
              std::ranges::count_if(trials, [](const Trial &t) { return t.mutant.has_value(); }), flags.device.c_str(),
              summary.c_str(), isRight ? "all as they must be" : "NOT all as they must be");
  if (!flags.json.empty())
    if (const Status status = writeJson(flags.json, trials, flags); !status.isOk()) {
      std::fprintf(stderr, "nsa_mutate: %s\n", status.toString().c_str());
      return kFailure;
    }
  return isRight ? 0 : kFailure;
}

int runProgram(int argc, char **argv) {
  Flags flags;
  CLI::App app("Changes the templates, one operation at a time, and runs the tests that must notice.", "nsa_mutate");
  app.add_option("--device", flags.device, "cpu: tile programs; gpu: device code and templates made by hand")
      ->check(CLI::IsMember({"cpu", "gpu"}))
      ->capture_default_str();
  app.add_flag("--all", flags.all, "On a GPU the tile programs too");
  app.add_option("--filter", flags.filter, "Only mutants with this text in their name");
  app.add_option("-j,--jobs", flags.jobs, "How many at a time; one for each core unless given")
      ->check(CLI::Range(1, 256));
  app.add_option("--limit", flags.limitSeconds, "Seconds that the tests of a mutant may take")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--json", flags.json, "Also write the results into this file");
  app.add_flag("--list", flags.list, "Name the mutants and their tests, and run nothing");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &request) {
    return app.exit(request);
  } catch (const CLI::ParseError &error) {
    std::fprintf(stderr, "nsa_mutate: %s\nRun `nsa_mutate --help`.\n", error.what());
    return kUsage;
  }
  return mutate(flags);
}

} // namespace
} // namespace nsa::mutation

int main(int argc, char **argv) {
  try {
    return nsa::mutation::runProgram(argc, argv);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "nsa_mutate: %s\n", error.what());
    return nsa::mutation::kFailure;
  }
}
