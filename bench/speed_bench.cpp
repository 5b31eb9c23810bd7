// nsa_bench_speed: how many times as fast as plain loops the generated fp32 kernels are, on one core. Loop and kernel
// run in turns and are compared by the processor time of each turn, so neighbours on the machine decide little. With
// --against it fails when a kernel has lost half of its recorded speed: tools/test watches speed with it.
#include "bench/measure/bench_case.h"
#include "bench/measure/bench_program.h"
#include "bench/measure/bench_report.h"
#include "bench/measure/plain_loop.h"
#include "bench/measure/plan_contender.h"
#include "bench/measure/speed_record.h"
#include "bench/measure/timing.h"
#include "runtime/base/cpu_features.h"

#include <algorithm>
#include <cstdio>
#include <functional>

namespace nsa::bench {
namespace {

struct Flags : CommonFlags {
  int samples = 21;
  std::vector<std::string> ops = {"dense", "window", "cmp", "sel", "combine", "compress"};
  std::string against;
};

// Tensors that fit in the caches of one core, as memory is shared with neighbours.
std::vector<BenchCase> watchedCases(const Flags &flags) {
  Spec spec;
  spec.dtype = DType::kF32;
  spec.queryHeads = 8;
  spec.kvHeads = 2;
  spec.qkDim = spec.vDim = 64;
  spec.window = 128;
  spec.selCount = 4;
  std::vector<BenchCase> cases;
  for (const auto &[op, tokens] : {std::pair("dense", 512), std::pair("window", 1024), std::pair("cmp", 2048),
                                   std::pair("sel", 512), std::pair("combine", 256), std::pair("compress", 1024)}) {
    spec.op = findOperator(op)->op;
    if (std::find(flags.ops.begin(), flags.ops.end(), op) != flags.ops.end())
      cases.push_back(promptCase("cpu64", spec, flags.quick ? tokens / 4 : tokens));
  }
  return cases;
}

// The levels of vectors that are recorded: all that this processor has, so that a record serves lesser ones too.
std::vector<std::string> recordedLevels() {
  std::vector<std::string> levels = {"x86-64-v3"};
  if (hostCpuFeatures() != levels.front())
    levels.emplace_back(hostCpuFeatures());
  return levels;
}

// One side of a comparison: runs that follow each other, so that all together are long beside the clock's own steps.
class Side {
public:
  explicit Side(std::function<Status()> run) : run(std::move(run)) {}

  // Milliseconds of the processor for one run.
  Result<double> take() {
    for (;; runs *= 2) {
      const double begin = processorSeconds();
      for (int64_t i = 0; i < runs; ++i)
        NSA_RETURN_IF_ERROR(run());
      const double milliseconds = (processorSeconds() - begin) * 1e3;
      if (milliseconds >= kLeastMs)
        return milliseconds / static_cast<double>(runs);
    }
  }

private:
  static constexpr double kLeastMs = 10;
  std::function<Status()> run;
  int64_t runs = 1;
};

struct Turns {
  Side plain, kernel;
  std::vector<double> plainMs, kernelMs, ratios;

  Status take() {
    NSA_ASSIGN_OR_RETURN(const double loop, plain.take());
    NSA_ASSIGN_OR_RETURN(const double own, kernel.take());
    plainMs.push_back(loop);
    kernelMs.push_back(own);
    ratios.push_back(loop / own);
    return Status::ok();
  }
};

Status measureCase(const Flags &flags, const std::string &features, const BenchCase &benchCase,
                   tools::Accelerator &accelerator, nsa_engine *engine, BenchReport &report) {
  NSA_ASSIGN_OR_RETURN(const std::unique_ptr<Arena> arena, Arena::make(accelerator, nullptr, drawInputs(benchCase)));
  NSA_ASSIGN_OR_RETURN(std::unique_ptr<PlanContender> kernel, PlanContender::make("kernel", engine, *arena));
  NSA_ASSIGN_OR_RETURN(int lanes, cpuVectorLanes(features));
  PlainLoop plain(arena->inputs, lanes);
  Turns turns{Side([&] { return plain.run(), Status::ok(); }), Side([&] { return kernel->enqueue(); }), {}, {}, {}};
  for (int i = 0; i < flags.samples; ++i)
    NSA_RETURN_IF_ERROR(turns.take());

  const auto [lowest, highest] = std::minmax_element(turns.ratios.begin(), turns.ratios.end());
  nlohmann::ordered_json row = caseFields(benchCase);
  row["features"] = features;
  row["threads"] = 1;
  row["plain_cpu_ms"] = median(turns.plainMs);
  row["cpu_ms"] = median(turns.kernelMs);
  row["times_plain"] = median(turns.ratios);
  row["lowest_times_plain"] = *lowest;
  row["highest_times_plain"] = *highest;
  row.update(kernel->facts());
  std::printf("%-9s %-9s plain loop %8.3f ms, kernel %8.3f ms: %6.2f times as fast (%.2f to %.2f)  %s\n",
              features.c_str(), row["op"].get<std::string>().c_str(), row["plain_cpu_ms"].get<double>(),
              row["cpu_ms"].get<double>(), median(turns.ratios), *lowest, *highest, row.value("config", "").c_str());
  std::fflush(stdout);
  return report.add(std::move(row));
}

Status run(const Flags &flags) {
  NSA_ASSIGN_OR_RETURN(std::unique_ptr<tools::Accelerator> accelerator, tools::Accelerator::open("cpu"));
  tools::EngineSettings settings = flags.engineSettings(NSA_MISS_DEFAULT);
  settings.cpuThreads = 1;
  std::optional<BenchReport> report;
  for (const std::string &features :
       flags.against.empty() ? recordedLevels() : std::vector<std::string>{std::string(hostCpuFeatures())}) {
    settings.cpuFeatures = features;
    NSA_ASSIGN_OR_RETURN(tools::EngineHandle engine, tools::createEngine(settings));
    if (!report) {
      NSA_ASSIGN_OR_RETURN(
          report,
          BenchReport::create(engine.get(), flags.results, "speed", {{"samples", flags.samples}},
                              {"operator = op", "tokens", "vectors of = features", "plain loop, CPU ms = plain_cpu_ms",
                               "kernel, CPU ms = cpu_ms", "times as fast = times_plain", "config"}));
    }
    for (const BenchCase &benchCase : watchedCases(flags))
      NSA_RETURN_IF_ERROR(measureCase(flags, features, benchCase, *accelerator, engine.get(), *report));
  }
  return flags.against.empty() ? Status::ok() : compareWithRecord(report->content(), flags.against);
}

} // namespace
} // namespace nsa::bench

int main(int argc, char **argv) {
  nsa::bench::Flags flags;
  nsa::bench::BenchProgram program("speed", "Compares the generated CPU kernels with plain loops, on one core.", flags,
                                   "Shorter lengths, which have no record");
  program.addCount("--samples", flags.samples, "Turns of each kernel and its loop", 1, 10000);
  program.addOperators(flags.ops);
  program.options()
      .add_option("--against", flags.against,
                  "Fail when a kernel has less than half of the speed that this file records")
      ->type_name("FILE");
  return program.run(argc, argv, [&] { return nsa::bench::run(flags); });
}
