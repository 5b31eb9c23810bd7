// The specs and lengths that the command line of `nsa bench` names, and the measurements that its verbs make at these
// lengths. Each function returns its results. If `nsa bench` is given a folder, it also writes the results as NAME.json
// and NAME.csv.
// Thread-safety: one thread.
#pragma once

#include "bench/measure/bench_device.h"
#include "bench/measure/bench_report.h"
#include "bench/measure/peer_process.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace nsa::bench {

struct NamedSpec {
  std::string name;
  Spec spec;
};

struct LengthChoice {
  std::vector<NamedSpec> specs;
  std::vector<int64_t> tokens; // of one sequence, all of them queries
  int samples = 7, warmUps = 3;
  bool tuned = false;  // measures the tuner's winner beside the default
  std::string results; // a folder; empty: no files are written
  // The callback `progress` receives a text that says what is being measured, so that the caller can show it.
  std::function<void(const std::string &)> progress;

  void say(const std::string &verb, const BenchCase &benchCase) const;
  // Creates the report of a verb, whose facts are the machine, the number of samples, and `facts`.
  Result<BenchReport> report(const BenchDevice &device, const std::string &verb, const BenchReport::Table &table,
                             const nlohmann::ordered_json &facts = nlohmann::ordered_json::object()) const;
  // Measures this library's plans for a case. The report gets a row for each plan: `fields`, the plan's name and times,
  // the figures that `figures` adds, and the facts of the plan.
  using Figures = std::function<void(nlohmann::ordered_json &row, const PlanContender &plan, const Arena &arena,
                                     double milliseconds)>;
  Status measure(BenchDevice &device, const BenchCase &benchCase, const nlohmann::ordered_json &fields,
                 BenchReport &report, const Figures &figures) const;
};

// Measures the whole forward pass, the time of each of its parts, and the time of dense attention: by the
// implementations of `peers`, or by this library when `peers` is null. The fact `crossover` of the report has an entry
// for each spec: the shortest measured length at which nsa was faster than dense attention.
Result<nlohmann::ordered_json> benchPrefill(BenchDevice &device, const LengthChoice &choice, PeerProcess *peers);
// Measures the forward pass, which saves what its gradient takes, and then the backward pass: with all that was saved,
// and with log-sum-exps and lists alone (contender "nsa recompute"). Dense attention is measured as in benchPrefill,
// and backward too. The fact `crossover` has two entries for each spec, whose field `pass` is "backward" and "forward
// and backward".
Result<nlohmann::ordered_json> benchBackward(BenchDevice &device, const LengthChoice &choice, PeerProcess *peers);
// Measures the specs, whose operator is select: how many block lists it makes in a second, and how much memory it
// needs. The report compares the memory of selection with the memory that all scores would need, because selection
// never stores all scores.
Result<nlohmann::ordered_json> benchSelection(BenchDevice &device, const LengthChoice &choice);
// Measures the specs, whose operator is compress, with each of the three kinds of phi, and compares its rate with the
// memory bandwidth.
Result<nlohmann::ordered_json> benchCompress(BenchDevice &device, const LengthChoice &choice);

} // namespace nsa::bench
