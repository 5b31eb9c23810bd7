#include "tests/unit/autotune/fake_machine.h"

#include <gtest/gtest.h>

namespace nsa {

TuneCallbacks FakeMachine::callbacks() {
  random.seed(seed);
  const auto place = [this] {
    placed.assign(trueMs.size(), 1);
    for (double &factor : placed)
      if (sessionNoise > 0)
        factor += sessionNoise * std::normal_distribution<double>()(random);
  };
  place();
  TuneCallbacks callbacks;
  callbacks.compile = [this](size_t index) {
    ++compiles;
    if (compileSeconds > 0)
      seconds += compileSeconds; // such tests compile on one thread
    return doesNotCompile.count(index)
               ? Status::error(ErrorCode::kCompileFailed, "candidate " + std::to_string(index) + " does not compile")
               : Status::ok();
  };
  callbacks.check = [this](size_t index) {
    seconds += checkSeconds;
    return isWrong.count(index) ? Status::error(ErrorCode::kInternal, "largest difference 0.5") : Status::ok();
  };
  callbacks.measure = [this](size_t index) -> Result<double> {
    if (doesNotRun.count(index))
      return Status::error(ErrorCode::kDeviceError, "launch failed");
    order.push_back(index);
    double ms = trueMs[index] * placed[index] * (1 + drift * static_cast<double>(runs++) / driftRuns);
    ms *= 1 + noise * std::normal_distribution<double>()(random);
    if (std::uniform_real_distribution<double>()(random) < outliers)
      ms *= 1.2;
    if (loadMs < boostMs)
      ms *= 1 - boost;
    loadMs += ms;
    seconds += ms / 1000;
    return ms;
  };
  if (restarts)
    callbacks.restart = [this, place] {
      seconds += restartSeconds;
      loadMs = 0;
      place();
    };
  callbacks.now = [this] { return seconds; };
  return callbacks;
}

std::vector<Candidate> candidatesFor(const FakeMachine &machine) {
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < machine.trueMs.size(); ++i)
    candidates.push_back({"attention", "key_tile=" + std::to_string(16 * (i + 1)), static_cast<double>(i)});
  return candidates;
}

TuneReport tuned(FakeMachine &machine, const TuneOptions &options) {
  Result<TuneReport> report = tune(candidatesFor(machine), machine.callbacks(), options);
  EXPECT_TRUE(report) << report.status().toString();
  return report ? *report : TuneReport();
}

} // namespace nsa
