#include "bench/verbs/threshold_bench.h"

#include "autotune/tuner/threshold.h"
#include "bench/measure/timing.h"
#include "bench/verbs/decode_bench.h"
#include "bench/verbs/decode_sweep.h"
#include "cache/kernel_store.h"
#include "runtime/base/compiler_revision.h"
#include "runtime/engine/choices/provenance.h"
#include "runtime/engine/choices/routes.h"
#include "tools/support/forward_pass.h"

#include <algorithm>
#include <map>

namespace nsa::bench {
namespace {

// One kernel of a way, and the template that has to serve it ("": whichever is the default).
struct Leg {
  Operator op;
  std::string variant;
};

// Two ways to the same result.
struct Switch {
  std::string name;
  PayingSide side;
  std::string usualName, otherName;
  std::vector<Leg> usual, other;
  Operator familyOp;
  int64_t least, most; // sizes
};

std::vector<Switch> switchesOf(const Spec &spec) {
  std::vector<Switch> switches;
  const std::string simple(kSimpleTemplate), tiled(kTiledTemplate);
  for (const Operator op : {Operator::kWindow, Operator::kCmp})
    switches.push_back({attentionRoute(op),
                        PayingSide::kFrom,
                        simple,
                        tiled,
                        {{op, simple}},
                        {{op, tiled}},
                        op,
                        op == Operator::kCmp ? int64_t{2} * spec.cmpBlock : 16,
                        4096});
  // Up to n blocks all are selected, so that dense attention is the same and needs no selection.
  switches.push_back({std::string(kDenseRoute),
                      PayingSide::kUpTo,
                      "select and sel",
                      "dense",
                      {{Operator::kSelect, ""}, {Operator::kSel, ""}},
                      {{Operator::kDense, ""}},
                      Operator::kSel,
                      spec.selBlock,
                      int64_t{spec.selCount} * spec.selBlock});
  switches.push_back({std::string(kSlotsRoute),
                      PayingSide::kFrom,
                      "query by query",
                      "block by block",
                      {{Operator::kSelBwd, std::string(kQueriesVariant)}},
                      {{Operator::kSelBwd, std::string(kSlotsVariant)}},
                      Operator::kSelDq,
                      int64_t{spec.selCount} * spec.selBlock,
                      int64_t{4} * spec.selCount * spec.selBlock});
  return switches;
}

std::vector<int64_t> gridOf(const Switch &between, const std::vector<int64_t> &asked) {
  std::vector<int64_t> grid;
  for (const int64_t size : asked)
    if (size >= between.least && size <= between.most)
      grid.push_back(size);
  if (asked.empty())
    for (int64_t size = between.least; size < between.most; size *= 2)
      grid.push_back(size);
  // Who asks for more asks for the end, too.
  if (asked.empty() && between.least <= between.most)
    grid.push_back(between.most);
  if (std::ranges::any_of(asked, [&](int64_t size) { return size > between.most; }))
    grid.push_back(between.most);
  std::sort(grid.begin(), grid.end());
  grid.erase(std::unique(grid.begin(), grid.end()), grid.end());
  return grid;
}

// Every block that a query may attend, as where their number is at most n.
void listAllBlocks(const Spec &spec, tools::OperatorInputs &inputs) {
  tools::HostTensor &list = inputs.tensors.at(TensorName::kBlockList);
  auto *blocks = reinterpret_cast<int32_t *>(list.bytes.data());
  for (int64_t query = 0; query < inputs.extents.timeQ; ++query)
    for (int64_t head = 0; head < spec.kvHeads; ++head)
      for (int64_t slot = 0; slot < spec.selCount; ++slot)
        *blocks++ = slot <= query / spec.selBlock ? static_cast<int32_t>(slot) : -1;
}

class ThresholdBench {
public:
  ThresholdBench(BenchDevice &device, const ThresholdChoice &choice) : device(device), choice(choice) {}

  Result<nlohmann::ordered_json> run() {
    NSA_ASSIGN_OR_RETURN(report, choice.lengths.report(device, "thresholds",
                                                       {"heads", "route", "tokens", "usual", "ms = usual_ms", "other",
                                                        "ms  = other_ms", "usual / other = ratio"}));
    for (const NamedSpec &named : choice.lengths.specs)
      for (const Switch &between : switchesOf(named.spec))
        NSA_RETURN_IF_ERROR(measure(named, between));
    NSA_RETURN_IF_ERROR(measureSplits());
    return report->content();
  }

private:
  // Forced variants have engines of their own.
  Result<nsa_engine *> engineFor(const std::string &variant) {
    if (variant.empty())
      return device.engine(choice.lengths.tuned);
    tools::EngineHandle &engine = forced[variant];
    if (!engine) {
      tools::EngineSettings settings = tools::withNothingStored(choice.engine);
      settings.forceVariant = variant;
      settings.missPolicy = choice.lengths.tuned ? NSA_MISS_TUNE : NSA_MISS_DEFAULT;
      NSA_ASSIGN_OR_RETURN(engine, tools::createEngine(settings));
    }
    return engine.get();
  }

  // A kernel of a way with the tensors that it runs on.
  struct Ready {
    std::unique_ptr<Arena> arena;
    std::unique_ptr<PlanContender> contender;
  };

  Result<Ready> ready(const NamedSpec &named, const Leg &leg, int64_t tokens) {
    BenchCase benchCase = promptCase(named.name, named.spec, tokens);
    benchCase.spec.op = leg.op;
    tools::OperatorInputs inputs = drawInputs(benchCase);
    if (leg.op == Operator::kSel)
      listAllBlocks(benchCase.spec, inputs);
    if (definitionOf(leg.op).gradientOf != leg.op)
      NSA_RETURN_IF_ERROR(tools::addSaved(inputs, device.engine(false), device.accelerator()));
    Ready made;
    NSA_ASSIGN_OR_RETURN(made.arena, device.arena(std::move(inputs), choice.lengths.warmUps));
    NSA_ASSIGN_OR_RETURN(nsa_engine * engine, engineFor(leg.variant));
    NSA_ASSIGN_OR_RETURN(made.contender,
                         PlanContender::make(leg.variant.empty() ? std::string(operatorName(leg.op)) : leg.variant,
                                             engine, *made.arena));
    return made;
  }

  Result<SizeTimes> timesAt(const NamedSpec &named, const Switch &between, int64_t tokens) {
    Spec spec = named.spec;
    spec.op = between.familyOp;
    choice.lengths.say(between.name, promptCase(named.name, spec, tokens));
    std::vector<Ready> legs;
    std::vector<Contender *> everybody;
    for (const std::vector<Leg> *way : {&between.usual, &between.other})
      for (const Leg &leg : *way) {
        NSA_ASSIGN_OR_RETURN(Ready made, ready(named, leg, tokens));
        everybody.push_back(made.contender.get());
        legs.push_back(std::move(made));
      }
    NSA_ASSIGN_OR_RETURN(const std::vector<Times> times, measureAll(everybody, choice.lengths.samples));
    SizeTimes sum{tokens, 0, 0};
    for (size_t i = 0; i < times.size(); ++i)
      (i < between.usual.size() ? sum.usualMs : sum.otherMs) += times[i].medianMs;
    return sum;
  }

  Status measure(const NamedSpec &named, const Switch &between) {
    const std::vector<int64_t> grid = gridOf(between, choice.lengths.tokens);
    nlohmann::ordered_json entry = {{"heads", named.name}, {"route", between.name}, {"threshold", nullptr}};
    if (grid.empty()) {
      entry["text"] = "not measured: no length from " + std::to_string(between.least) + " to " +
                      std::to_string(between.most) + " was asked for";
      return addEntry(std::move(entry));
    }
    Result<ThresholdReport> found =
        findThreshold(grid, {.side = between.side}, [&](int64_t size) { return timesAt(named, between, size); });
    if (!found && isNotServed(found.status())) {
      entry["text"] = "not measured: " + found.status().toString();
      return addEntry(std::move(entry));
    }
    if (!found)
      return found.status();
    for (const SizeTimes &times : found->times)
      NSA_RETURN_IF_ERROR(report->add({{"heads", named.name},
                                       {"route", between.name},
                                       {"tokens", times.size},
                                       {"usual", between.usualName},
                                       {"usual_ms", times.usualMs},
                                       {"other", between.otherName},
                                       {"other_ms", times.otherMs},
                                       {"ratio", times.usualMs / times.otherMs}}));
    if (found->threshold)
      entry["threshold"] = *found->threshold;
    const std::string size = found->threshold ? std::to_string(*found->threshold) : "";
    entry["text"] = !found->threshold                   ? "never"
                    : between.side == PayingSide::kFrom ? "from " + size + " tokens"
                                                        : "up to " + size + " tokens";
    const Status covers = coversSizes(*found, between.least, between.most);
    if (!covers.isOk())
      entry["text"] = entry["text"].get<std::string>() +
                      ", among the measured lengths alone, so it is not stored: " + covers.toString();
    NSA_RETURN_IF_ERROR(addEntry(std::move(entry)));
    return covers.isOk() ? store(named, between, *found) : Status::ok();
  }

  // Each batch and length has an answer of its own: which way pays against the rule's number of shares.
  Status measureSplits() {
    if (choice.decodeBatches.empty())
      return Status::ok();
    NSA_ASSIGN_OR_RETURN(SplitEngines engines, SplitEngines::open(choice.engine));
    for (const NamedSpec &named : choice.lengths.specs)
      for (const int64_t batch : choice.decodeBatches)
        for (const int64_t tokens : choice.decodeTokens)
          for (const int64_t newTokens : choice.decodeNewTokens) {
            SplitPoint point{named.spec, batch, tokens, newTokens};
            point.spec.op = withCache(named.spec.op);
            point.spec.layout = Layout::kDense;
            choice.lengths.say("decode.splits at batch " + std::to_string(batch) + ", new tokens " +
                                   std::to_string(newTokens),
                               promptCase(named.name, point.spec, tokens));
            NSA_ASSIGN_OR_RETURN(SplitSweep sweep, sweepDecode(device, engines, point, choice.lengths.samples));
            NSA_RETURN_IF_ERROR(addSplits(named, point, sweep));
          }
    return Status::ok();
  }

  Status addSplits(const NamedSpec &named, const SplitPoint &point, const SplitSweep &sweep) {
    StoredRoute route;
    route.family = splitsFamily(point.spec);
    route.device = report->deviceText("choice_key");
    route.name = splitsRoute(point.spec, point.maxima());
    route.threshold = sweep.best;
    route.provenance = provenanceOf(compilerRevision());
    const double rule = sweep.ways.front().milliseconds;
    for (const auto &[way, milliseconds] : sweep.ways) {
      const std::string name = way.isRule() ? "rule " + sweep.rule : way.isOneKernel ? way.name() : "shares";
      route.evidence.push_back({way.number(), name, milliseconds, milliseconds / rule, ""});
      if (!way.isRule())
        NSA_RETURN_IF_ERROR(report->add({{"heads", named.name},
                                         {"route", "decode.splits"},
                                         {"batch", point.batch},
                                         {"tokens", point.tokens},
                                         {"new_tokens", point.newTokens},
                                         {"usual", "rule " + sweep.rule},
                                         {"usual_ms", rule},
                                         {"other", way.name()},
                                         {"other_ms", milliseconds},
                                         {"ratio", rule / milliseconds}}));
    }
    nlohmann::ordered_json entry = {
        {"heads", named.name},
        {"route", route.name},
        {"threshold", nullptr},
        {"text", "never: the rule's " + sweep.rule + " shares, which no other way beats by its margin"}};
    if (sweep.best != StoredRoute::kNever) {
      entry["threshold"] = sweep.best;
      entry["text"] = (sweep.best == kTakesStep ? std::string(kStepVariant) : std::to_string(sweep.best) + " shares") +
                      ", in place of the rule's " + sweep.rule;
    }
    NSA_RETURN_IF_ERROR(addEntry(std::move(entry)));
    return put(route);
  }

  Status addEntry(nlohmann::ordered_json entry) {
    thresholds.push_back(std::move(entry));
    return report->setFact("thresholds", thresholds);
  }

  Status store(const NamedSpec &named, const Switch &between, const ThresholdReport &found) {
    Spec spec = named.spec;
    spec.op = between.familyOp;
    StoredRoute route;
    route.family = routeFamily(spec);
    route.device = report->deviceText("choice_key");
    route.name = between.name;
    route.threshold = found.threshold.value_or(StoredRoute::kNever);
    route.provenance = provenanceOf(compilerRevision());
    for (const SizeTimes &times : found.times) {
      route.evidence.push_back({times.size, between.usualName, times.usualMs, times.usualMs / times.otherMs, ""});
      route.evidence.push_back({times.size, between.otherName, times.otherMs, times.otherMs / times.usualMs, ""});
    }
    return put(route);
  }

  Status put(const StoredRoute &route) const {
    if (choice.storeIn.empty())
      return Status::ok();
    std::string warning;
    NSA_ASSIGN_OR_RETURN(std::unique_ptr<KernelStore> database,
                         KernelStore::open({.path = choice.storeIn, .readOnly = false}, warning));
    if (!warning.empty())
      return Status::error(ErrorCode::kIoError, warning);
    return database->putRoute(route);
  }

  BenchDevice &device;
  const ThresholdChoice &choice;
  std::map<std::string, tools::EngineHandle> forced; // by variant
  std::optional<BenchReport> report;
  nlohmann::ordered_json thresholds = nlohmann::ordered_json::array();
};

} // namespace

Result<nlohmann::ordered_json> benchThresholds(BenchDevice &device, const ThresholdChoice &choice) {
  return ThresholdBench(device, choice).run();
}

} // namespace nsa::bench
