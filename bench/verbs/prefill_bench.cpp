#include "autotune/tuner/crossover.h"
#include "bench/measure/bench_report.h"
#include "bench/verbs/length_bench.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace nsa::bench {
namespace {

class PrefillBench {
public:
  PrefillBench(BenchDevice &device, const LengthChoice &choice, PeerProcess *peers)
      : device(device), choice(choice), peers(peers) {}

  Result<nlohmann::ordered_json> run() {
    NSA_RETURN_IF_ERROR(open());
    for (const NamedSpec &named : choice.specs) {
      duels.clear();
      for (const int64_t tokens : choice.tokens)
        NSA_RETURN_IF_ERROR(measure(named, tokens));
      const std::optional<Crossover> crossover = crossoverOf(duels);
      nlohmann::ordered_json entry = {{"heads", named.name}, {"tokens", nullptr}, {"interpolated", nullptr}};
      if (crossover)
        entry["tokens"] = crossover->measured;
      if (crossover && crossover->interpolated)
        entry["interpolated"] = *crossover->interpolated;
      entry["text"] = duels.empty() ? "no dense attention was measured"
                      : crossover   ? crossover->toString()
                                    : "none, dense attention is the faster one at every length measured";
      crossovers.push_back(std::move(entry));
      NSA_RETURN_IF_ERROR(report->setFact("crossover", crossovers));
    }
    return report->content();
  }

private:
  Status open() {
    NSA_ASSIGN_OR_RETURN(nlohmann::json machine, device.facts());
    nlohmann::ordered_json facts = {{"machine", machine}, {"samples", choice.samples}};
    if (peers)
      facts["peers"] = peers->versions();
    NSA_ASSIGN_OR_RETURN(report, BenchReport::create(choice.results, "prefill", facts,
                                                     {{"heads", "heads"},
                                                      {"tokens", "tokens"},
                                                      {"implementation", "implementation"},
                                                      {"median ms", "median_ms"},
                                                      {"compress", "ms_compress"},
                                                      {"cmp", "ms_cmp"},
                                                      {"select", "ms_select"},
                                                      {"sel", "ms_sel"},
                                                      {"win", "ms_win"},
                                                      {"combine", "ms_combine"}}));
    return Status::ok();
  }

  Status measure(const NamedSpec &named, int64_t tokens) {
    const BenchCase nsaCase = promptCase(named.name, named.spec, tokens);
    BenchCase denseCase = nsaCase;
    denseCase.spec.op = Operator::kDense;
    choice.say("prefill", nsaCase);
    const tools::OperatorInputs inputs = tools::drawInputs(nsaCase.spec, {{tokens}, {tokens}}, 1);
    NSA_ASSIGN_OR_RETURN(tools::DeviceOperator job,
                         tools::DeviceOperator::upload(device.accelerator(), inputs, checkedOutputs()));
    const Arena arena{device.accelerator(), inputs, job, device.flush(), choice.warmUps};
    NSA_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<PlanContender>> ours, device.contenders(arena, choice.tuned));

    // Dense attention has tensors of its own, wherever it runs.
    std::vector<std::unique_ptr<Contender>> dense;
    std::optional<tools::OperatorInputs> denseInputs;
    std::optional<tools::DeviceOperator> denseJob;
    if (peers) {
      Result<PeerProcess::Peers> prepared = peers->prepare(denseCase, device.flush().size());
      if (prepared)
        dense = std::move(prepared->contenders);
      else
        NSA_RETURN_IF_ERROR(addAbsent(denseCase, "peers", prepared.status().error().message));
      if (prepared)
        for (const PeerProcess::Absent &absent : prepared->absent)
          NSA_RETURN_IF_ERROR(addAbsent(denseCase, absent.name, absent.reason));
    } else {
      denseInputs = tools::drawInputs(denseCase.spec, {{tokens}, {tokens}}, 1);
      NSA_ASSIGN_OR_RETURN(denseJob, tools::DeviceOperator::upload(device.accelerator(), *denseInputs, {}));
      NSA_ASSIGN_OR_RETURN(
          std::unique_ptr<PlanContender> plan,
          PlanContender::make("nsa dense", device.engine(choice.tuned),
                              {device.accelerator(), *denseInputs, *denseJob, device.flush(), choice.warmUps}));
      dense.push_back(std::move(plan));
    }

    std::vector<Contender *> everybody;
    for (const auto &contender : ours)
      everybody.push_back(contender.get());
    for (const auto &contender : dense)
      everybody.push_back(contender.get());
    const std::vector<Result<Times>> times = measureInTurns(everybody, choice.samples);
    double ourBest = INFINITY, denseBest = INFINITY;
    for (size_t i = 0; i < everybody.size(); ++i) {
      const bool isOurs = i < ours.size();
      if (!times[i] && (isOurs || !peers))
        return times[i].status();
      if (!times[i]) {
        NSA_RETURN_IF_ERROR(addAbsent(denseCase, everybody[i]->name(), times[i].status().error().message));
        continue;
      }
      double &best = isOurs ? ourBest : denseBest;
      best = std::min(best, times[i]->medianMs);
      nlohmann::ordered_json row = rowOf(isOurs ? nsaCase : denseCase, everybody[i]->name());
      row["median_ms"] = times[i]->medianMs;
      row["fastest_ms"] = times[i]->fastestMs;
      row["slowest_ms"] = times[i]->slowestMs;
      if (isOurs) {
        NSA_ASSIGN_OR_RETURN(nlohmann::ordered_json parts, ours[i]->parts(std::min(choice.samples, 3)));
        row.update(parts);
      }
      row.update(everybody[i]->facts());
      NSA_RETURN_IF_ERROR(report->add(std::move(row)));
    }
    if (std::isfinite(denseBest))
      duels.push_back({tokens, ourBest, denseBest});
    return Status::ok();
  }

  // What the check of sampled rows needs beside the result.
  static std::set<TensorName> checkedOutputs() {
    return {TensorName::kBlockList, TensorName::kKComp, TensorName::kVComp};
  }

  static nlohmann::ordered_json rowOf(const BenchCase &benchCase, const std::string &implementation) {
    nlohmann::ordered_json row = caseFields(benchCase);
    row["window"] = fieldsOf(benchCase.spec.op) & kWindowField ? benchCase.spec.window : 0;
    row["implementation"] = implementation;
    return row;
  }

  Status addAbsent(const BenchCase &benchCase, const std::string &name, const std::string &reason) {
    nlohmann::ordered_json row = rowOf(benchCase, name);
    row["note"] = "does not serve: " + reason;
    return report->add(std::move(row));
  }

  BenchDevice &device;
  const LengthChoice &choice;
  PeerProcess *peers;
  std::optional<BenchReport> report;
  std::vector<Duel> duels; // of the present spec
  nlohmann::ordered_json crossovers = nlohmann::ordered_json::array();
};

} // namespace

void LengthChoice::say(const std::string &verb, const BenchCase &benchCase) const {
  if (progress)
    progress(verb + " " + benchCase.name + ", " + std::to_string(benchCase.maxima.seqlenK) + " tokens" +
             (tuned ? ", with tuning" : ""));
}

Result<nlohmann::ordered_json> benchPrefill(BenchDevice &device, const LengthChoice &choice, PeerProcess *peers) {
  return PrefillBench(device, choice, peers).run();
}

} // namespace nsa::bench
