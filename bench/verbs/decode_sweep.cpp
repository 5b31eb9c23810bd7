#include "bench/verbs/decode_sweep.h"

#include "bench/measure/timing.h"
#include "bench/verbs/decode_bench.h"
#include "runtime/base/key_splits.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>

namespace nsa::bench {
namespace {

constexpr double kSplitSampleMs = 1.0; // on the CPU: below it a step is too close to the clock's own

std::array<int64_t, 3> sharesOf(Spec spec, const Maxima &maxima, int64_t splits) {
  spec.keySplits = static_cast<int32_t>(splits);
  return KeySplits::make(spec, maxima).counts;
}

// The rule, each count that comes to something else than those before it, and one kernel.
std::vector<StepWay> waysOf(const Spec &spec, const Maxima &maxima, bool isGpu) {
  std::vector<StepWay> ways = {{}};
  std::vector<std::array<int64_t, 3>> seen = {sharesOf(spec, maxima, 0)};
  for (int64_t splits = 1; splits <= KeySplits::kMost; splits *= 2) {
    const std::array<int64_t, 3> shares = sharesOf(spec, maxima, splits);
    if (std::find(seen.begin(), seen.end(), shares) != seen.end())
      continue;
    seen.push_back(shares);
    ways.push_back({.splits = splits});
  }
  if (isGpu && stepServes(spec, maxima))
    ways.push_back({.isOneKernel = true});
  return ways;
}

// One way's plan, captured.
struct SplitWay {
  StepWay way;
  tools::PlanHandle plan;
  tools::Recording step;
  std::vector<double> samples;
};

// Measures decoding in all ways, in turns: whole steps are captured as graphs and replayed.
class Sweep {
public:
  Sweep(BenchDevice &device, SplitEngines &engines, const SplitPoint &point, int samples)
      : device(device), engines(engines), point(point), samples(samples) {}

  Result<SplitSweep> run() {
    NSA_ASSIGN_OR_RETURN(filled,
                         FilledDecode::make(device.accelerator(), point.spec, point.maxima(), point.cached(), {}));
    decode = &*filled->run;
    NSA_RETURN_IF_ERROR(prepare());
    for (int i = 0; i < samples; ++i)
      for (SplitWay &way : ways)
        NSA_RETURN_IF_ERROR(sample(way, i));
    for (const SplitWay &way : ways) {
      NSA_RETURN_IF_ERROR(tools::toStatus(nsa_plan_status(way.plan.get(), device.accelerator().stream(), nullptr)));
    }
    return decide();
  }

private:
  // All plans before the first capture: they share a workspace, which grows.
  Status prepare() {
    for (const StepWay &way : waysOf(decode->spec(), decode->maxima(), device.accelerator().isCuda())) {
      NSA_ASSIGN_OR_RETURN(nsa_engine * engine, engines.engine(way));
      Result<tools::PlanHandle> plan =
          tools::createPlan(engine, decode->spec(), decode->maxima(), device.accelerator().stream());
      // The kernel is not for this device, or has no memory for sequences of this length.
      if (!plan && way.isOneKernel && isNotServed(plan.status()))
        continue;
      NSA_RETURN_IF_ERROR(plan.status());
      NSA_RETURN_IF_ERROR(decode->allocateWorkspace(plan->get()));
      ways.push_back({way, std::move(*plan), nullptr, {}});
    }
    for (SplitWay &way : ways) {
      // What is loaded at the first use must not be captured.
      NSA_RETURN_IF_ERROR(decode->rewind(point.cached()));
      NSA_RETURN_IF_ERROR(decode->enqueue(way.plan.get()));
      NSA_ASSIGN_OR_RETURN(way.step, device.accelerator().record([&] { return decode->enqueue(way.plan.get()); }));
    }
    return Status::ok();
  }

  // One step from a cold L2; on the CPU the mean of several.
  Status sample(SplitWay &way, int i) {
    double sum = 0;
    int steps = 0;
    do {
      NSA_RETURN_IF_ERROR(decode->rewind(point.cached()));
      NSA_RETURN_IF_ERROR(flushCaches(device.accelerator(), device.flush(), i));
      NSA_ASSIGN_OR_RETURN(double milliseconds, device.accelerator().time([&] { return way.step(); }));
      sum += milliseconds;
      ++steps;
    } while (!device.accelerator().isCuda() && sum < kSplitSampleMs);
    way.samples.push_back(sum / steps);
    return Status::ok();
  }

  SplitSweep decide() const {
    SplitSweep sweep;
    for (const int64_t shares : sharesOf(decode->spec(), decode->maxima(), 0))
      sweep.rule += (sweep.rule.empty() ? "" : "/") + std::to_string(shares);
    for (const SplitWay &way : ways)
      sweep.ways.push_back({way.way, median(way.samples)});
    sweep.best = bestOf(sweep.ways);
    return sweep;
  }

  BenchDevice &device;
  SplitEngines &engines;
  const SplitPoint &point;
  const int samples;
  std::unique_ptr<FilledDecode> filled;
  tools::DecodeRun *decode = nullptr; // of `filled`
  std::vector<SplitWay> ways;
};

} // namespace

int64_t bestOf(const std::vector<TimedWay> &ways) {
  // Numbers of shares differ little, and what noise says of them must not be kept.
  constexpr double kSharesMargin = 1.2, kOtherWayMargin = 1.05;
  TimedWay best = ways.front();
  for (const TimedWay &timed : ways)
    if (!timed.way.isOneKernel && timed.milliseconds < best.milliseconds &&
        ways.front().milliseconds >= kSharesMargin * timed.milliseconds)
      best = timed;
  const auto kernel = std::ranges::find_if(ways, [](const TimedWay &timed) { return timed.way.isOneKernel; });
  if (kernel != ways.end() && kernel->milliseconds < kOtherWayMargin * best.milliseconds)
    return kTakesStep;
  return best.way.isRule() ? StoredRoute::kNever : best.way.number();
}

bool isNotServed(const Status &status) {
  return status.code() == ErrorCode::kUnsupported ||
         (status.code() == ErrorCode::kInvalidArgument && status.error().field == "template");
}

Result<SplitEngines> SplitEngines::open(tools::EngineSettings settings) {
  NSA_ASSIGN_OR_RETURN(tools::ScratchFolder folder, tools::ScratchFolder::make());
  settings = tools::withNothingStored(std::move(settings));
  settings.cachePath = folder.file("kernels.db");
  settings.missPolicy = NSA_MISS_DEFAULT;
  settings.ignoreThresholds = true;
  return SplitEngines(std::move(settings), std::move(folder));
}

Result<nsa_engine *> SplitEngines::engine(const StepWay &way) {
  tools::EngineHandle &engine = engines[way];
  if (!engine) {
    tools::EngineSettings own = settings;
    own.decodeSplits = static_cast<int32_t>(way.splits);
    own.forceVariant = way.isOneKernel ? kStepVariant : kTiledTemplate;
    NSA_ASSIGN_OR_RETURN(engine, tools::createEngine(own));
  }
  return engine.get();
}

Result<SplitSweep> sweepDecode(BenchDevice &device, SplitEngines &engines, const SplitPoint &point, int samples) {
  return Sweep(device, engines, point, samples).run();
}

} // namespace nsa::bench
