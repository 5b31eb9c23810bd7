#include "autotune/tuner/crossover.h"
#include "bench/verbs/length_bench.h"

#include <algorithm>
#include <cmath>

namespace nsa::bench {
namespace {

class PrefillBench {
public:
  PrefillBench(BenchDevice &device, const LengthChoice &choice, PeerProcess *peers)
      : device(device), choice(choice), peers(peers) {}

  Result<nlohmann::ordered_json> run() {
    nlohmann::ordered_json facts = nlohmann::ordered_json::object();
    if (peers)
      facts["peers"] = peers->versions();
    NSA_ASSIGN_OR_RETURN(report, choice.report(device, "prefill",
                                               {"heads", "tokens", "implementation", "median ms = median_ms",
                                                "compress = ms_compress", "cmp = ms_cmp", "select = ms_select",
                                                "sel = ms_sel", "win = ms_win", "combine = ms_combine"},
                                               facts));
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
  Status measure(const NamedSpec &named, int64_t tokens) {
    const BenchCase nsaCase = promptCase(named.name, named.spec, tokens);
    BenchCase denseCase = nsaCase;
    denseCase.spec.op = Operator::kDense;
    choice.say("prefill", nsaCase);
    NSA_ASSIGN_OR_RETURN(const std::unique_ptr<Arena> arena, device.arena(drawInputs(nsaCase), choice.warmUps));
    NSA_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<PlanContender>> ours, device.contenders(*arena, choice.tuned));

    // Dense attention has tensors of its own, wherever it runs.
    std::vector<std::unique_ptr<Contender>> dense;
    std::unique_ptr<Arena> denseArena;
    if (peers) {
      Result<PeerProcess::Peers> prepared = peers->prepare(denseCase, device.flush());
      if (prepared)
        dense = std::move(prepared->contenders);
      else
        NSA_RETURN_IF_ERROR(addAbsent(denseCase, "peers", prepared.status().error().message));
      if (prepared)
        for (const PeerProcess::Absent &absent : prepared->absent)
          NSA_RETURN_IF_ERROR(addAbsent(denseCase, absent.name, absent.reason));
    } else {
      NSA_ASSIGN_OR_RETURN(denseArena, device.arena(drawInputs(denseCase), choice.warmUps));
      NSA_ASSIGN_OR_RETURN(std::unique_ptr<PlanContender> plan,
                           PlanContender::make("nsa dense", device.engine(choice.tuned), *denseArena));
      dense.push_back(std::move(plan));
    }

    const std::vector<Contender *> everybody = allOf(ours, dense);
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
      row.update(times[i]->fields());
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

Result<nlohmann::ordered_json> benchPrefill(BenchDevice &device, const LengthChoice &choice, PeerProcess *peers) {
  return PrefillBench(device, choice, peers).run();
}

} // namespace nsa::bench
