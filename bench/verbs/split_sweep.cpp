#include "bench/verbs/split_sweep.h"

#include "bench/measure/median.h"
#include "bench/verbs/decode_bench.h"
#include "runtime/base/key_splits.h"
#include "tools/support/decode_run.h"
#include "tools/support/scratch_folder.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace nsa::bench {
namespace {

constexpr int64_t kRule = 0;
constexpr double kSplitMargin = 1.2;
constexpr double kSplitSampleMs = 1.0; // on the CPU: below it a step is too close to the clock's own

std::array<int64_t, 3> sharesOf(Spec spec, const Maxima &maxima, int64_t splits) {
  spec.keySplits = static_cast<int32_t>(splits);
  return KeySplits::make(spec, maxima).counts;
}

// The rule, and each count that comes to something else than those before it.
std::vector<int64_t> waysOf(const Spec &spec, const Maxima &maxima) {
  std::vector<int64_t> ways = {kRule};
  std::vector<std::array<int64_t, 3>> seen = {sharesOf(spec, maxima, kRule)};
  for (int64_t splits = 1; splits <= KeySplits::kMost; splits *= 2) {
    const std::array<int64_t, 3> shares = sharesOf(spec, maxima, splits);
    if (std::find(seen.begin(), seen.end(), shares) != seen.end())
      continue;
    seen.push_back(shares);
    ways.push_back(splits);
  }
  return ways;
}

// One way's plan, captured.
struct SplitWay {
  int64_t splits = 0;
  tools::PlanHandle plan;
  tools::Recording step;
  std::vector<double> samples;
};

class Sweep {
public:
  Sweep(BenchDevice &device, SplitEngines &engines, const SplitPoint &point, int samples)
      : device(device), engines(engines), point(point), samples(samples) {}

  Result<SplitSweep> run() {
    const std::vector<int64_t> counts(static_cast<size_t>(point.batch), 1);
    Spec whole = point.spec;
    whole.op = withoutCache(whole.op);
    whole.layout = Layout::kDense;
    tools::OperatorInputs history = tools::drawInputs(whole, {counts, counts}, 1);
    shareKeys(history);
    NSA_ASSIGN_OR_RETURN(
        tools::DecodeRun opened,
        tools::DecodeRun::open(device.accelerator(), history,
                               {.room = point.tokens, .mostNew = 1, .pageSize = point.spec.pageSize, .isShared = true},
                               {}));
    decode.emplace(std::move(opened));
    NSA_RETURN_IF_ERROR(decode->pretend(point.tokens - 1, 1));
    NSA_RETURN_IF_ERROR(decode->feed(counts));
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
    for (const int64_t splits : waysOf(decode->spec(), decode->maxima())) {
      NSA_ASSIGN_OR_RETURN(nsa_engine * engine, engines.engine(splits));
      NSA_ASSIGN_OR_RETURN(tools::PlanHandle plan,
                           tools::createPlan(engine, decode->spec(), decode->maxima(), device.accelerator().stream()));
      NSA_RETURN_IF_ERROR(decode->allocateWorkspace(plan.get()));
      ways.push_back({splits, std::move(plan), nullptr, {}});
    }
    for (SplitWay &way : ways) {
      // What is loaded at the first use must not be captured.
      NSA_RETURN_IF_ERROR(decode->rewind(point.tokens - 1));
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
      NSA_RETURN_IF_ERROR(decode->rewind(point.tokens - 1));
      if (tools::Buffer &memory = device.flush(); memory.size())
        NSA_RETURN_IF_ERROR(device.accelerator().fill(memory.data(), static_cast<unsigned char>(i), memory.size()));
      NSA_ASSIGN_OR_RETURN(double milliseconds, device.accelerator().time([&] { return way.step(); }));
      sum += milliseconds;
      ++steps;
    } while (!device.accelerator().isCuda() && sum < kSplitSampleMs);
    way.samples.push_back(sum / steps);
    return Status::ok();
  }

  SplitSweep decide() const {
    SplitSweep sweep;
    for (const int64_t shares : sharesOf(decode->spec(), decode->maxima(), kRule))
      sweep.rule += (sweep.rule.empty() ? "" : "/") + std::to_string(shares);
    for (const SplitWay &way : ways)
      sweep.ways.push_back({way.splits, median(way.samples)});
    const auto fastest =
        std::min_element(sweep.ways.begin(), sweep.ways.end(), [](const SplitSweep::Way &a, const SplitSweep::Way &b) {
          return a.milliseconds < b.milliseconds;
        });
    if (fastest->splits != kRule && sweep.ways.front().milliseconds >= kSplitMargin * fastest->milliseconds)
      sweep.best = fastest->splits;
    return sweep;
  }

  BenchDevice &device;
  SplitEngines &engines;
  const SplitPoint &point;
  const int samples;
  std::optional<tools::DecodeRun> decode;
  std::vector<SplitWay> ways;
};

} // namespace

struct SplitEngines::State {
  State(tools::EngineSettings settings, tools::ScratchFolder folder)
      : settings(std::move(settings)), folder(std::move(folder)) {}

  tools::EngineSettings settings;
  tools::ScratchFolder folder;
  std::map<int64_t, tools::EngineHandle> engines; // by the number that they force
};

Result<SplitEngines> SplitEngines::open(tools::EngineSettings settings) {
  NSA_ASSIGN_OR_RETURN(tools::ScratchFolder folder, tools::ScratchFolder::make());
  SplitEngines made;
  made.state = std::make_unique<State>(tools::withNothingStored(std::move(settings)), std::move(folder));
  made.state->settings.cachePath = made.state->folder.file("kernels.db");
  made.state->settings.missPolicy = NSA_MISS_DEFAULT;
  made.state->settings.ignoreThresholds = true;
  return made;
}

SplitEngines::SplitEngines() = default;
SplitEngines::SplitEngines(SplitEngines &&other) noexcept = default;

SplitEngines::~SplitEngines() = default;

Result<nsa_engine *> SplitEngines::engine(int64_t splits) {
  auto found = state->engines.find(splits);
  if (found == state->engines.end()) {
    tools::EngineSettings settings = state->settings;
    settings.decodeSplits = static_cast<int32_t>(splits);
    NSA_ASSIGN_OR_RETURN(tools::EngineHandle engine, tools::createEngine(settings));
    found = state->engines.emplace(splits, std::move(engine)).first;
  }
  return found->second.get();
}

Result<SplitSweep> sweepSplits(BenchDevice &device, SplitEngines &engines, const SplitPoint &point, int samples) {
  return Sweep(device, engines, point, samples).run();
}

} // namespace nsa::bench
