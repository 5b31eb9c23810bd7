// nsa_bench_cpu: which share of the processor's FMA peak the generated fp32 kernels reach, on one core and on all, and
// how long a kernel takes to compile; and the whole forward pass by its parts, on one core. Peak and kernels run in
// turns, so both see the same clocks and neighbours.
#include "bench/measure/bench_case.h"
#include "bench/measure/bench_program.h"
#include "bench/measure/bench_report.h"
#include "bench/measure/fma_peak.h"
#include "bench/measure/plan_contender.h"
#include "bench/measure/stream_bandwidth.h"
#include "bench/measure/timing.h"
#include "runtime/engine/compile/compiler_library.h"
#include "tools/support/number_option.h"
#include "tools/support/operator_work.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <set>
#include <thread>

namespace nsa::bench {
namespace {

struct Flags : CommonFlags {
  int samples = 11, forwardSamples = 5;
  double tuneBudget = 30;
  std::vector<std::string> ops = {"dense", "window", "nsa"};
  std::vector<int64_t> forwardTokens = {1024, 4096};
  bool noTune = false;

  bool wants(Operator op) const { return std::find(ops.begin(), ops.end(), operatorName(op)) != ops.end(); }
};

// The peak rates of the processor, measured in turns with the kernels, so that all see the same clocks and neighbours.
// One sample is the time of a billion operations, or of a gigabyte.
class RoofContender final : public Contender {
public:
  // The peak rate of fused multiply-adds of `threads` threads together.
  static RoofContender fmaPeak(int threads) {
    return {"fma peak", [threads] { return measureFmaPeak(threads, 1).gflops; }};
  }
  // The memory bandwidth of one core.
  static RoofContender stream() {
    return {"stream", [stream = std::make_shared<StreamBandwidth>()] { return stream->gigabytesPerSecond(); }};
  }

  const std::string &name() const override { return contenderName; }
  Result<double> sample() override {
    const double measured = rate();
    return measured > 0 ? Result<double>(1e3 / measured)
                        : Status::error(ErrorCode::kUnsupported, "this processor has neither AVX-512 nor FMA");
  }
  nlohmann::ordered_json facts() const override { return nlohmann::ordered_json::object(); }

private:
  RoofContender(std::string name, std::function<double()> rate)
      : contenderName(std::move(name)), rate(std::move(rate)) {}

  std::string contenderName;
  std::function<double()> rate; // billions a second
};

// Two kernels and the peak at one number of threads.
struct Lane {
  int threads = 0;
  tools::EngineHandle engines[2];
  std::vector<std::unique_ptr<Contender>> contenders; // the peak, default, tuned
};

Result<Lane> openLane(const Flags &flags, int threads, Arena &arena) {
  Lane lane;
  lane.threads = threads;
  lane.contenders.push_back(std::make_unique<RoofContender>(RoofContender::fmaPeak(threads)));
  for (const bool tuned : {false, true}) {
    if (tuned && (flags.quick || flags.noTune))
      continue;
    // What an earlier run stored must not be measured.
    tools::EngineSettings settings = flags.engineSettings(tuned ? NSA_MISS_TUNE : NSA_MISS_DEFAULT);
    settings.tuneBudgetSeconds = flags.tuneBudget;
    settings.cpuThreads = threads;
    NSA_ASSIGN_OR_RETURN(tools::EngineHandle engine, tools::createEngine(settings));
    NSA_ASSIGN_OR_RETURN(std::unique_ptr<PlanContender> plan,
                         PlanContender::make(tuned ? "tuned" : "default", engine.get(), arena));
    lane.engines[tuned] = std::move(engine);
    lane.contenders.push_back(std::move(plan));
  }
  return lane;
}

Status measureCase(const Flags &flags, const BenchCase &benchCase, tools::Accelerator &accelerator,
                   BenchReport &report) {
  NSA_ASSIGN_OR_RETURN(const std::unique_ptr<Arena> arena,
                       Arena::make(accelerator, nullptr, drawInputs(benchCase), 3, {TensorName::kLse}));
  std::vector<Lane> lanes;
  for (const int threads : std::set<int>{1, static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))}) {
    NSA_ASSIGN_OR_RETURN(Lane lane, openLane(flags, threads, *arena));
    lanes.push_back(std::move(lane));
  }
  std::vector<Contender *> everybody;
  for (const Lane &lane : lanes)
    for (const std::unique_ptr<Contender> &contender : lane.contenders)
      everybody.push_back(contender.get());
  NSA_ASSIGN_OR_RETURN(const std::vector<Times> times, measureAll(everybody, flags.samples));

  const double gigaflops = tools::usefulFlops(arena->inputs) * 1e-9;
  std::vector<double> oneThread; // GFLOP/s of the first lane
  size_t next = 0;
  for (const Lane &lane : lanes) {
    const double peak = 1e3 / times[next].medianMs;
    const double peakByCpuTime = 1e3 / times[next].cpuMs; // of one core, as is the rate beside it
    for (size_t i = 0; i < lane.contenders.size(); ++i) {
      const Times &own = times[next++];
      const double rate = i == 0 ? peak : gigaflops / own.medianMs * 1e3;
      if (lane.threads == 1)
        oneThread.push_back(rate);
      nlohmann::ordered_json row = {{"what", lane.contenders[i]->name()}, {"threads", lane.threads}};
      if (i > 0) {
        row.update(caseFields(benchCase));
        row.update(own.fields());
      } else {
        row.update({{"median_ms", nullptr}, {"fastest_ms", nullptr}, {"slowest_ms", nullptr}});
      }
      row["gflops"] = rate;
      row["percent_of_peak"] = 100 * rate / peak;
      row["percent_of_peak_by_cpu_time"] = i == 0 ? 100.0 : 100 * gigaflops / own.cpuMs * 1e3 / peakByCpuTime;
      row["times_one_thread"] = rate / oneThread[i];
      row.update(lane.contenders[i]->facts());
      std::printf(
          "%-8s %d thread(s) %9.2f GFLOP/s, %5.1f %% of the peak (%5.1f %% by CPU time), %.2f times one thread  %s\n",
          row["what"].get<std::string>().c_str(), lane.threads, rate, 100 * rate / peak,
          row["percent_of_peak_by_cpu_time"].get<double>(), rate / oneThread[i], row.value("config", "").c_str());
      std::fflush(stdout);
      NSA_RETURN_IF_ERROR(report.add(std::move(row)));
    }
  }
  return Status::ok();
}

// Compiles the default kernel of the spec several times, after one compile that also opens the library. Each compile
// renders, lowers and generates the code anew, because the library does not cache kernels.
Status measureCompileTime(const std::string &compilerPath, const Spec &spec, BenchReport &report) {
  constexpr int kSamples = 5;
  const double begin = wallMs();
  NSA_ASSIGN_OR_RETURN(std::shared_ptr<const CompilerLibrary> library, CompilerLibrary::open(compilerPath));
  const Problem problem = Problem::make(spec, {.batch = 1, .tokensQ = 4096, .seqlenQ = 4096, .seqlenK = 4096});
  CompileRequest request;
  request.target = "cpu";
  request.op = problem.opName();
  request.fixed = problem.fixed();
  NSA_ASSIGN_OR_RETURN(const std::vector<Candidate> candidates, library->list(request));
  const Candidate &first = candidates.front();
  request.templateName = first.templateName;
  NSA_ASSIGN_OR_RETURN(request.config, parseValues(first.config));
  NSA_RETURN_IF_ERROR(library->compile(request).status());
  const double openMs = wallMs() - begin;
  std::vector<double> wall, cpu; // of the whole process
  for (int i = 0; i < kSamples; ++i) {
    const double wallBefore = wallMs(), cpuBefore = processorSeconds();
    NSA_RETURN_IF_ERROR(library->compile(request).status());
    wall.push_back(wallMs() - wallBefore);
    cpu.push_back((processorSeconds() - cpuBefore) * 1e3);
  }
  std::printf("compile  %.1f ms, %.1f ms of CPU time; the first with opening the library %.1f ms\n", median(wall),
              median(cpu), openMs);
  return report.add({{"what", "compile"},
                     {"op", operatorName(spec.op)},
                     {"median_ms", median(wall)},
                     {"cpu_ms", median(cpu)},
                     {"template", first.templateName},
                     {"config", first.config}});
}

// The paper's, and ones that a test has time for.
BenchCase forwardCase(const Flags &flags, int64_t tokens) {
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

// The whole forward pass and each part of it, with as many heads as in the paper, or fewer with --quick. A part that
// computes products is compared with the core's peak, and a part that moves bytes with the core's memory bandwidth.
Status measureForwardParts(const Flags &flags, int64_t tokens, bool tuned, tools::Accelerator &accelerator,
                           BenchReport &report) {
  const BenchCase benchCase = forwardCase(flags, tokens);
  NSA_ASSIGN_OR_RETURN(const std::unique_ptr<Arena> arena, Arena::make(accelerator, nullptr, drawInputs(benchCase)));
  const tools::OperatorInputs &inputs = arena->inputs;
  // What an earlier run stored must not be measured.
  tools::EngineSettings settings = flags.engineSettings(tuned ? NSA_MISS_TUNE : NSA_MISS_DEFAULT);
  settings.tuneBudgetSeconds = flags.tuneBudget;
  settings.cpuThreads = 1;
  NSA_ASSIGN_OR_RETURN(tools::EngineHandle engine, tools::createEngine(settings));
  NSA_ASSIGN_OR_RETURN(std::unique_ptr<PlanContender> plan,
                       PlanContender::make(tuned ? "tuned" : "default", engine.get(), *arena));

  RoofContender peak = RoofContender::fmaPeak(1), stream = RoofContender::stream();
  NSA_ASSIGN_OR_RETURN(const std::vector<Times> times, measureAll({&peak, &stream, plan.get()}, flags.forwardSamples));
  NSA_ASSIGN_OR_RETURN(nlohmann::ordered_json parts, plan->parts(flags.forwardSamples));

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

Status run(const Flags &flags) {
  NSA_ASSIGN_OR_RETURN(std::unique_ptr<tools::Accelerator> accelerator, tools::Accelerator::open(flags.device));
  NSA_ASSIGN_OR_RETURN(tools::EngineHandle engine, tools::createEngine(flags.engineSettings(NSA_MISS_DEFAULT)));
  NSA_ASSIGN_OR_RETURN(nlohmann::json description, tools::describeEngine(engine.get()));
  const std::string compilerPath = description["compiler"].value("path", "");
  NSA_ASSIGN_OR_RETURN(BenchReport report,
                       BenchReport::create(engine.get(), flags.results, "cpu",
                                           {{"vector_bits", measureFmaPeak(1, 1).vectorBits}},
                                           {"what", "operator = op", "part", "tokens", "threads", "GFLOP/s = gflops",
                                            "% of the peak = percent_of_peak", "GB/s = gigabytes_per_second",
                                            "% of stream = percent_of_stream", "times one thread = times_one_thread",
                                            "median ms = median_ms", "CPU ms = cpu_ms", "config"}));

  BenchCase benchCase;
  benchCase.name = "cpu128";
  benchCase.spec.dtype = DType::kF32;
  benchCase.spec.queryHeads = 8;
  benchCase.spec.kvHeads = 1;
  benchCase.spec.qkDim = benchCase.spec.vDim = 128;
  benchCase.spec.window = 512;
  const int64_t tokens = flags.quick ? 256 : 4096;
  benchCase.maxima = {.batch = 1, .tokensQ = tokens, .seqlenQ = tokens, .seqlenK = tokens};
  for (const OperatorDef &def : publicOperators()) {
    if (!flags.wants(def.op) || def.isWhole)
      continue;
    benchCase.spec.op = def.op;
    NSA_RETURN_IF_ERROR(measureCase(flags, benchCase, *accelerator, report));
    NSA_RETURN_IF_ERROR(measureCompileTime(compilerPath, benchCase.spec, report));
  }
  if (std::ranges::any_of(publicOperators(),
                          [&](const OperatorDef &def) { return def.isForward() && flags.wants(def.op); }))
    for (const int64_t length : flags.quick ? std::vector<int64_t>{1280} : flags.forwardTokens)
      for (const bool tuned : {false, true}) {
        if (tuned && (flags.quick || flags.noTune))
          continue;
        NSA_RETURN_IF_ERROR(measureForwardParts(flags, length, tuned, *accelerator, report));
      }
  return Status::ok();
}

} // namespace
} // namespace nsa::bench

int main(int argc, char **argv) {
  nsa::bench::Flags flags;
  nsa::bench::BenchProgram program("cpu", "Measures the generated CPU kernels against the processor's peak.", flags,
                                   "A short length, without tuning");
  program.addCount("--samples", flags.samples, "Samples of each measurement", 1, 10000);
  program.addCount("--forward-samples", flags.forwardSamples, "Samples of the whole forward pass, seconds each", 1,
                   1000);
  program.addKernelBudget(flags.tuneBudget);
  program.addOperators(flags.ops);
  CLI::App &options = program.options();
  options.add_option("--forward-tokens", flags.forwardTokens, "Lengths of the whole forward pass")
      ->delimiter(',')
      ->check(nsa::tools::wholeAbove0())
      ->capture_default_str()
      ->type_name("LIST");
  options.add_flag("--no-tune", flags.noTune, "Only the compiler's best guess");
  return program.run(argc, argv, [&] { return nsa::bench::run(flags); });
}
