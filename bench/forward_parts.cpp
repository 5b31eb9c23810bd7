#include "bench/forward_parts.h"

#include "bench/measure/bench_case.h"
#include "bench/measure/plan_contender.h"
#include "bench/roof_contender.h"
#include "tools/support/operator_work.h"

#include <cstdio>

namespace nsa::bench {
namespace {

// The paper's, and ones that a test has time for.
BenchCase caseOf(const CommonFlags &flags, int64_t tokens) {
  Spec spec = usualForward(flags.quick ? 64 : 192);
  spec.dtype = DType::kF32;
  if (flags.quick) {
    spec.queryHeads = 8;
    spec.kvHeads = 1;
    spec.vDim = 64;
  }
  return promptCase(flags.quick ? "small" : "nsa192", spec, tokens);
}

struct Roofs {
  double gflops = 0, gigabytesPerSecond = 0;
};

void addRates(nlohmann::ordered_json &row, double flops, double bytes, double milliseconds, const Roofs &roofs) {
  row["median_ms"] = milliseconds;
  if (flops > 0) {
    row["gflop"] = flops * 1e-9;
    row["gflops"] = flops * 1e-6 / milliseconds;
    row["percent_of_peak"] = 100 * flops * 1e-6 / milliseconds / roofs.gflops;
  }
  row["gigabytes_per_second"] = bytes * 1e-6 / milliseconds;
  row["percent_of_stream"] = 100 * bytes * 1e-6 / milliseconds / roofs.gigabytesPerSecond;
}

void print(const nlohmann::ordered_json &row) {
  std::printf("%-12s T=%-6lld %-8s %9.2f ms", row.value("what", "").c_str(), row.value("tokens", 0LL),
              row.value("part", "").c_str(), row.value("median_ms", 0.0));
  if (row.contains("gflop"))
    std::printf(" %8.2f GFLOP %8.2f GFLOP/s %5.1f %% of the peak", row.value("gflop", 0.0), row.value("gflops", 0.0),
                row.value("percent_of_peak", 0.0));
  else
    std::printf(" %8.2f GB/s %5.1f %% of stream", row.value("gigabytes_per_second", 0.0),
                row.value("percent_of_stream", 0.0));
  std::printf("  %s\n", row.value("config", "").c_str());
  std::fflush(stdout);
}

} // namespace

Status measureForwardParts(const CommonFlags &flags, const ForwardParts &choice, tools::Accelerator &accelerator,
                           BenchReport &report) {
  const BenchCase benchCase = caseOf(flags, choice.tokens);
  NSA_ASSIGN_OR_RETURN(const std::unique_ptr<Arena> arena, Arena::make(accelerator, nullptr, drawInputs(benchCase)));
  const tools::OperatorInputs &inputs = arena->inputs;
  // What an earlier run stored must not be measured.
  tools::EngineSettings settings = flags.engineSettings(choice.tuned ? NSA_MISS_TUNE : NSA_MISS_DEFAULT);
  settings.tuneBudgetSeconds = choice.tuneBudget;
  settings.cpuThreads = 1;
  NSA_ASSIGN_OR_RETURN(tools::EngineHandle engine, tools::createEngine(settings));
  NSA_ASSIGN_OR_RETURN(std::unique_ptr<PlanContender> plan,
                       PlanContender::make(choice.tuned ? "tuned" : "default", engine.get(), *arena));

  RoofContender peak = RoofContender::fmaPeak(1), stream = RoofContender::stream();
  NSA_ASSIGN_OR_RETURN(const std::vector<Times> times, measureAll({&peak, &stream, plan.get()}, choice.samples));
  NSA_ASSIGN_OR_RETURN(nlohmann::ordered_json parts, plan->parts(choice.samples));

  const Roofs roofs{1e3 / times[0].medianMs, 1e3 / times[1].medianMs};
  nlohmann::ordered_json common;
  common["what"] = plan->name();
  common["threads"] = 1;
  common.update(caseFields(benchCase));
  common["window"] = benchCase.spec.window;
  std::printf("%-12s %.1f GFLOP/s on one core\n%-12s %.1f GB/s on one core\n", peak.name().c_str(), roofs.gflops,
              stream.name().c_str(), roofs.gigabytesPerSecond);
  NSA_RETURN_IF_ERROR(report.add({{"what", peak.name()}, {"threads", 1}, {"gflops", roofs.gflops}}));
  NSA_RETURN_IF_ERROR(
      report.add({{"what", stream.name()}, {"threads", 1}, {"gigabytes_per_second", roofs.gigabytesPerSecond}}));

  const Times &own = times[2];
  double bytes = 0;
  for (const tools::PartWork &work : tools::workByPart(inputs))
    bytes += work.bytes;
  nlohmann::ordered_json whole = common;
  whole["part"] = "all";
  addRates(whole, tools::usefulFlops(inputs), bytes, own.medianMs, roofs);
  whole["fastest_ms"] = own.fastestMs;
  whole["slowest_ms"] = own.slowestMs;
  whole["percent_of_peak_by_cpu_time"] = 100 * tools::usefulFlops(inputs) * 1e-9 / own.cpuMs * times[0].cpuMs;
  whole.update(plan->facts());
  print(whole);
  NSA_RETURN_IF_ERROR(report.add(std::move(whole)));
  for (const tools::PartWork &work : tools::workByPart(inputs)) {
    const std::string name(work.name);
    const auto found = parts.find("ms_" + name);
    if (found == parts.end())
      return Status::error(ErrorCode::kInternal, "a timed run did not tell the part " + name);
    nlohmann::ordered_json row = common;
    row["part"] = name;
    addRates(row, work.flops, work.bytes, found->get<double>(), roofs);
    // Where lists are the whole past, dense attention serves the branch.
    const std::string config = plan->configOf(operatorName(work.part));
    row["config"] = config.empty() ? "dense " + plan->configOf("dense") : config;
    print(row);
    NSA_RETURN_IF_ERROR(report.add(std::move(row)));
  }
  return Status::ok();
}

} // namespace nsa::bench
