#include "autotune/tuner/crossover.h"
#include "bench/verbs/length_bench.h"
#include "tools/support/forward_pass.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace nsa::bench {
namespace {

// A pass of a layer of a network: ours, and the pass of dense attention that it is compared with.
struct Pass {
  Operator ours = std::ranges::find_if(operatorTable(), &OperatorDef::isForward)->op;
  Operator dense = std::ranges::find(operatorTable(), MetKeys::kAll, &OperatorDef::keys)->op;

  Pass backward() const { return {findGradient(ours)->op, findGradient(dense)->op}; }
};

// The fastest times of one length, in milliseconds; infinite if nothing was measured.
struct Best {
  double ours = INFINITY, dense = INFINITY;
};

// Measures forward passes, or forward and backward passes, which make a step of training.
class PassBench {
public:
  PassBench(BenchDevice &device, const LengthChoice &choice, PeerProcess *peers, bool trains)
      : device(device), choice(choice), peers(peers), trains(trains) {}

  Result<nlohmann::ordered_json> run() {
    nlohmann::ordered_json facts = nlohmann::ordered_json::object();
    if (peers)
      facts["peers"] = peers->versions();
    NSA_ASSIGN_OR_RETURN(report, choice.report(device, verb(), trains ? trainingTable() : prefillTable(), facts));
    for (const NamedSpec &named : choice.specs) {
      std::vector<Duel> forward, backward, step;
      for (const int64_t tokens : choice.tokens) {
        NSA_ASSIGN_OR_RETURN(const Best ofForward, measure(forwardPass, named, tokens));
        addDuel(forward, tokens, ofForward);
        if (!trains)
          continue;
        NSA_ASSIGN_OR_RETURN(const Best ofBackward, measure(forwardPass.backward(), named, tokens));
        addDuel(backward, tokens, ofBackward);
        addDuel(step, tokens, {ofForward.ours + ofBackward.ours, ofForward.dense + ofBackward.dense});
      }
      if (!trains)
        addCrossover({{"heads", named.name}}, forward);
      for (const auto &[pass, duels] : {std::pair("backward", &backward), {"forward and backward", &step}})
        if (trains)
          addCrossover({{"heads", named.name}, {"pass", pass}}, *duels);
      NSA_RETURN_IF_ERROR(report->setFact("crossover", crossovers));
    }
    return report->content();
  }

private:
  using Contenders = std::vector<std::unique_ptr<PlanContender>>;

  const char *verb() const { return trains ? "backward" : "prefill"; }

  static BenchReport::Table prefillTable() {
    return {"heads",
            "tokens",
            "implementation",
            "median ms = median_ms",
            "compress = ms_compress",
            "cmp = ms_cmp",
            "select = ms_select",
            "sel = ms_sel",
            "win = ms_win",
            "combine = ms_combine"};
  }
  static BenchReport::Table trainingTable() {
    return {"heads",
            "tokens",
            "op",
            "implementation",
            "median ms = median_ms",
            "gates = ms_gates",
            "dq cmp = ms_dq_cmp",
            "dq sel = ms_dq_sel",
            "dq slots = ms_dq_slots",
            "sum slots = ms_sum_slots",
            "dq win = ms_dq_win",
            "dkv cmp = ms_dkv_cmp",
            "dkv sel = ms_dkv_sel",
            "dkv win = ms_dkv_win",
            "dx = ms_dx",
            "sum = ms_sum"};
  }

  static void addDuel(std::vector<Duel> &duels, int64_t tokens, const Best &best) {
    if (std::isfinite(best.dense))
      duels.push_back({tokens, best.ours, best.dense});
  }

  void addCrossover(nlohmann::ordered_json entry, const std::vector<Duel> &duels) {
    const std::optional<Crossover> crossover = crossoverOf(duels);
    entry["tokens"] = crossover ? nlohmann::ordered_json(crossover->measured) : nullptr;
    entry["interpolated"] =
        crossover && crossover->interpolated ? nlohmann::ordered_json(*crossover->interpolated) : nullptr;
    entry["text"] = duels.empty() ? "no dense attention was measured"
                    : crossover   ? crossover->toString()
                                  : "none, dense attention is the faster one at every length measured";
    crossovers.push_back(std::move(entry));
  }

  Result<Best> measure(const Pass &pass, const NamedSpec &named, int64_t tokens) {
    BenchCase nsaCase = promptCase(named.name, named.spec, tokens);
    nsaCase.spec.op = pass.ours;
    BenchCase denseCase = nsaCase;
    denseCase.spec.op = pass.dense;
    choice.say(verb(), nsaCase);
    arenas.clear();
    NSA_ASSIGN_OR_RETURN(Contenders ours, prepare(nsaCase));

    // Dense attention has tensors of its own, wherever it runs.
    std::vector<std::unique_ptr<Contender>> dense;
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
      NSA_ASSIGN_OR_RETURN(tools::OperatorInputs inputs, inputsOf(denseCase));
      NSA_ASSIGN_OR_RETURN(Arena * arena, addArena(std::move(inputs), {}));
      NSA_ASSIGN_OR_RETURN(std::unique_ptr<PlanContender> plan,
                           PlanContender::make("nsa dense", device.engine(choice.tuned), *arena));
      dense.push_back(std::move(plan));
    }
    return compare(nsaCase, denseCase, ours, dense);
  }

  // Our contenders, each with the tensors that it reads and writes.
  Result<Contenders> prepare(const BenchCase &nsaCase) {
    const bool isGradient = definitionOf(nsaCase.spec.op).gradientOf != nsaCase.spec.op;
    const std::set<TensorName> saved = tools::savedFor(forwardPass.backward().ours);
    NSA_ASSIGN_OR_RETURN(const tools::OperatorInputs inputs, inputsOf(nsaCase));
    NSA_ASSIGN_OR_RETURN(Arena * arena, addArena(inputs, isGradient ? tools::allOutputs(nsaCase.spec.op)
                                                         : trains   ? saved
                                                                    : std::set<TensorName>()));
    NSA_ASSIGN_OR_RETURN(Contenders ours, device.contenders(*arena, choice.tuned));
    if (!isGradient)
      return ours;
    // A program with little memory saves only what cannot be computed again.
    std::set<TensorName> withheld;
    for (const TensorName name : saved)
      if (definitionOf(nsaCase.spec.op).operandOf(name)->isOptional())
        withheld.insert(name);
    NSA_ASSIGN_OR_RETURN(arena, addArena(inputs, tools::allOutputs(nsaCase.spec.op), withheld));
    NSA_ASSIGN_OR_RETURN(std::unique_ptr<PlanContender> again,
                         PlanContender::make("nsa recompute", device.engine(choice.tuned), *arena));
    ours.push_back(std::move(again));
    return ours;
  }

  // With what a gradient takes from its forward pass.
  Result<tools::OperatorInputs> inputsOf(const BenchCase &benchCase) {
    tools::OperatorInputs inputs = drawInputs(benchCase);
    if (definitionOf(benchCase.spec.op).gradientOf != benchCase.spec.op)
      NSA_RETURN_IF_ERROR(tools::addSaved(inputs, device.engine(false), device.accelerator()));
    return inputs;
  }

  Result<Arena *> addArena(tools::OperatorInputs inputs, std::set<TensorName> wanted,
                           const std::set<TensorName> &withheld = {}) {
    NSA_ASSIGN_OR_RETURN(std::unique_ptr<Arena> arena,
                         device.arena(std::move(inputs), choice.warmUps, std::move(wanted), withheld));
    return arenas.emplace_back(std::move(arena)).get();
  }

  Result<Best> compare(const BenchCase &nsaCase, const BenchCase &denseCase, const Contenders &ours,
                       const std::vector<std::unique_ptr<Contender>> &dense) {
    const std::vector<Contender *> everybody = allOf(ours, dense);
    const std::vector<Result<Times>> times = measureInTurns(everybody, choice.samples);
    Best best;
    for (size_t i = 0; i < everybody.size(); ++i) {
      const bool isOurs = i < ours.size();
      if (!times[i] && (isOurs || !peers))
        return times[i].status();
      if (!times[i]) {
        NSA_RETURN_IF_ERROR(addAbsent(denseCase, everybody[i]->name(), times[i].status().error().message));
        continue;
      }
      double &fastest = isOurs ? best.ours : best.dense;
      fastest = std::min(fastest, times[i]->medianMs);
      nlohmann::ordered_json row = rowOf(isOurs ? nsaCase : denseCase, everybody[i]->name());
      row.update(times[i]->fields());
      if (isOurs) {
        NSA_ASSIGN_OR_RETURN(nlohmann::ordered_json parts, ours[i]->parts(std::min(choice.samples, 3)));
        row.update(parts);
      }
      row.update(everybody[i]->facts());
      NSA_RETURN_IF_ERROR(report->add(std::move(row)));
    }
    return best;
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
  const bool trains;
  const Pass forwardPass{};
  std::optional<BenchReport> report;
  std::vector<std::unique_ptr<Arena>> arenas; // of the present length and pass
  nlohmann::ordered_json crossovers = nlohmann::ordered_json::array();
};

} // namespace

Result<nlohmann::ordered_json> benchPrefill(BenchDevice &device, const LengthChoice &choice, PeerProcess *peers) {
  return PassBench(device, choice, peers, /*trains=*/false).run();
}

Result<nlohmann::ordered_json> benchBackward(BenchDevice &device, const LengthChoice &choice, PeerProcess *peers) {
  return PassBench(device, choice, peers, /*trains=*/true).run();
}

} // namespace nsa::bench
