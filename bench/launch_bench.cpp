// nsa_bench_launch: what a call costs beside its kernel. Plans from memory and from a warm database, and nsa_run over
// the bare launch that it ends in, on one thread and on many.
#include "bench/bare_launch.h"
#include "bench/measure/bench_program.h"
#include "bench/measure/bench_report.h"
#include "bench/measure/timing.h"
#include "runtime/base/key_splits.h"
#include "runtime/capi/convert.h"
#include "runtime/engine/choices/kernel_cache.h"
#include "tools/support/scratch_folder.h"

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <ctime>
#include <functional>
#include <random>
#include <thread>

namespace nsa::bench {
namespace {

constexpr int kMostDistinctRequests = 10000;

struct Flags : CommonFlags {
  int specs = kMostDistinctRequests, threads = 8, rounds = 41;
};

// A problem so small that the launch of its kernel takes almost all of the time.
LaunchRequest tinyRequest() {
  LaunchRequest tiny;
  tiny.spec.queryHeads = tiny.spec.kvHeads = 1;
  tiny.spec.qkDim = tiny.spec.vDim = 64;
  tiny.spec.window = 16;
  tiny.maxima = {.batch = 1, .tokensQ = 1, .seqlenQ = 1, .seqlenK = 1};
  return tiny;
}

// Many queries have other kernels, which take tensor maps on some GPUs. A plan for many queries may also be run with
// the small tensors of tinyRequest.
LaunchRequest crowdedRequest() {
  LaunchRequest crowded = tinyRequest();
  crowded.maxima = {.batch = 512, .tokensQ = 512 * 512, .seqlenQ = 512, .seqlenK = 1024};
  return crowded;
}

// Problems that have different keys in the kernel database, although at most two kernels compute all of them: one for
// few queries and one for many.
std::vector<LaunchRequest> distinctRequests(int count) {
  std::vector<LaunchRequest> requests;
  for (int i = 0; i < kMostDistinctRequests; ++i) {
    LaunchRequest request = tinyRequest();
    auto power = [&](int divisor) { return int64_t{1} << (i / divisor % 10); };
    request.spec.window = static_cast<int32_t>(power(1));
    request.maxima.batch = power(10);
    request.maxima.seqlenQ = power(100);
    request.maxima.seqlenK = 1024 * power(1000);
    request.maxima.tokensQ = request.maxima.batch * request.maxima.seqlenQ;
    requests.push_back(request);
  }
  // The order of the database's keys must not be that of the calls, and it is the same in every run.
  // NOLINTNEXTLINE(bugprone-random-generator-seed)
  std::shuffle(requests.begin(), requests.end(), std::mt19937_64(1));
  requests.resize(static_cast<size_t>(std::min(count, kMostDistinctRequests)));
  return requests;
}

// Problems with shapes that real programs use, each of which needs a kernel binary of its own.
std::vector<LaunchRequest> realRequests(bool quick) {
  std::vector<LaunchRequest> requests;
  for (const MetKeys keys : {MetKeys::kWindow, MetKeys::kAll})
    for (int32_t group : {1, 16})
      for (int32_t dim : {64, 128}) {
        LaunchRequest request = tinyRequest();
        request.spec.op = std::ranges::find(publicOperators(), keys, &OperatorDef::keys)->op;
        request.spec.queryHeads = group * 4;
        request.spec.kvHeads = 4;
        request.spec.qkDim = request.spec.vDim = dim;
        request.spec.window = 512;
        request.maxima = {.batch = 1, .tokensQ = 4096, .seqlenQ = 4096, .seqlenK = 4096};
        requests.push_back(request);
      }
  if (quick)
    requests.resize(2);
  return requests;
}

// Where threads outnumber cores a thread's own processor time is measured, else the time that passes.
class CallClock {
public:
  explicit CallClock(int threads) : wall(threads <= static_cast<int>(std::thread::hardware_concurrency())) {}
  const char *name() const { return wall ? "wall" : "cpu"; }
  double nanoseconds() const {
    timespec now;
    clock_gettime(wall ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
  }

private:
  bool wall;
};

// `work(thread)` on so many threads at once, the calling one among them.
void onThreads(int threads, const std::function<void(size_t thread)> &work) {
  std::vector<std::jthread> others;
  for (size_t thread = 1; thread < static_cast<size_t>(threads); ++thread)
    others.emplace_back(work, thread);
  work(0);
}

class LaunchBench {
public:
  LaunchBench(const Flags &flags, tools::ScratchFolder folder) : flags(flags), folder(std::move(folder)) {}
  Status run();

private:
  Result<tools::EngineHandle> openEngine(nsa_miss_policy policy, const std::string &cache) const;
  Status fillDatabases();
  Status measureDatabase();
  Status measureMemory();
  Status measureRuns();
  Status measureRunsOf(nsa_engine *engine, const LaunchRequest &request, const StoredKernel &kernel,
                       const std::string &what);
  Status measureRunsOn(int threads, const BareLaunch &bare, const LaunchRequest &request, nsa_plan *plan,
                       const std::string &what);
  // The work of one round of a thread, whose time counts, and what follows it.
  using Calls = std::function<Status(size_t thread)>;
  // The microseconds of a call, for each kind of calls and each round of each thread. A round makes `callsPerRound`
  // calls of each kind in turn, so that the kinds see the same moment of the machine. The threads are within `context`.
  Result<std::vector<std::vector<double>>> sample(int threads, int callsPerRound, const std::vector<Calls> &kinds,
                                                  const Calls &settle = {},
                                                  const cuda::PrimaryContext *context = nullptr) const;
  Status add(const std::string &measure, int threads, const char *clock, std::vector<double> microseconds);

  const Flags &flags;
  tools::ScratchFolder folder;
  std::string manyPath = folder.file("many.db"), real = folder.file("real.db");
  std::vector<LaunchRequest> distinct, kernels;
  std::optional<StoredKernel> tinyKernel, crowdedKernel;
  std::optional<BenchReport> report;
};

Status LaunchBench::add(const std::string &measure, int threads, const char *clock, std::vector<double> microseconds) {
  std::sort(microseconds.begin(), microseconds.end());
  std::printf("%-52s %2d threads  %10.3f us (%.3f to %.3f, %s)\n", measure.c_str(), threads, median(microseconds),
              microseconds.front(), microseconds.back(), clock);
  std::fflush(stdout);
  return report->add({{"measure", measure},
                      {"threads", threads},
                      {"clock", clock},
                      {"samples", microseconds.size()},
                      {"median_us", median(microseconds)},
                      {"fastest_us", microseconds.front()},
                      {"slowest_us", microseconds.back()}});
}

Result<tools::EngineHandle> LaunchBench::openEngine(nsa_miss_policy policy, const std::string &cache) const {
  return tools::createEngine(flags.engineSettings(policy, cache));
}

Status LaunchBench::fillDatabases() {
  // Few queries and many have kernels of their own.
  const LaunchRequest tiny = tinyRequest();
  const LaunchRequest crowded = crowdedRequest();
  kernels = realRequests(flags.quick);
  {
    NSA_ASSIGN_OR_RETURN(tools::EngineHandle engine, openEngine(NSA_MISS_DEFAULT, real));
    NSA_ASSIGN_OR_RETURN(report,
                         BenchReport::create(engine.get(), flags.results, "launch", nlohmann::ordered_json::object(),
                                             {"measure", "threads", "median us = median_us", "clock"}));
    for (const LaunchRequest &request : {tiny, crowded})
      NSA_RETURN_IF_ERROR(tools::createPlan(engine.get(), request.spec, request.maxima).status());
    for (const LaunchRequest &request : kernels)
      NSA_RETURN_IF_ERROR(tools::createPlan(engine.get(), request.spec, request.maxima).status());
  }
  KernelCache made({.path = real}, Logger());
  auto storedOf = [&](const LaunchRequest &request) -> Result<KernelCache::Hit> {
    const std::string problem = Problem::make(request.spec, request.maxima).key();
    if (std::optional<KernelCache::Hit> hit = made.find(problem, report->deviceText("choice_key")))
      return std::move(*hit);
    return Status::error(ErrorCode::kInternal, "the kernel of '" + problem + "' was not stored; " + made.trouble());
  };
  NSA_ASSIGN_OR_RETURN(KernelCache::Hit few, storedOf(tiny));
  NSA_ASSIGN_OR_RETURN(KernelCache::Hit many, storedOf(crowded));
  tinyKernel = few.kernel;
  crowdedKernel = many.kernel;

  distinct = distinctRequests(flags.quick ? 200 : flags.specs);
  std::string warning;
  NSA_ASSIGN_OR_RETURN(std::unique_ptr<KernelStore> to,
                       KernelStore::open({.path = manyPath, .readOnly = false}, warning));
  for (const LaunchRequest &request : distinct) {
    KernelCache::Hit &stored = hasManyRows(request.spec, request.maxima) ? many : few;
    stored.choice.problem = Problem::make(request.spec, request.maxima).key();
    NSA_RETURN_IF_ERROR(to->put(stored.kernel, &stored.choice));
  }
  return Status::ok();
}

Status LaunchBench::measureDatabase() {
  std::vector<double> first, further;
  const CallClock clock(1);
  // A GPU's context is made once: plans do not wait for it here.
  NSA_ASSIGN_OR_RETURN(tools::EngineHandle keeper, openEngine(NSA_MISS_FAIL, real));
  NSA_RETURN_IF_ERROR(tools::createPlan(keeper.get(), kernels[0].spec, kernels[0].maxima).status());
  for (int round = 0; round < (flags.quick ? 3 : 11); ++round) {
    NSA_ASSIGN_OR_RETURN(tools::EngineHandle engine, openEngine(NSA_MISS_FAIL, real));
    std::vector<tools::PlanHandle> plans;
    for (const LaunchRequest &request : kernels) {
      const double start = clock.nanoseconds();
      Result<tools::PlanHandle> plan = tools::createPlan(engine.get(), request.spec, request.maxima);
      const double microseconds = (clock.nanoseconds() - start) / 1e3;
      if (!plan)
        return plan.status();
      (plans.empty() ? first : further).push_back(microseconds);
      plans.push_back(std::move(*plan));
    }
  }
  NSA_RETURN_IF_ERROR(add("plan from a warm database, opening the file", 1, clock.name(), first));
  return add("plan from a warm database, another kernel", 1, clock.name(), further);
}

Result<std::vector<std::vector<double>>> LaunchBench::sample(int threads, int callsPerRound,
                                                             const std::vector<Calls> &kinds, const Calls &settle,
                                                             const cuda::PrimaryContext *context) const {
  const CallClock clock(threads);
  const auto count = static_cast<size_t>(threads);
  std::vector<std::vector<std::vector<double>>> samples(count, std::vector<std::vector<double>>(kinds.size()));
  std::vector<Status> failures(count);
  std::barrier together(threads);
  onThreads(threads, [&](size_t thread) {
    std::optional<cuda::ContextScope> scope;
    if (context)
      scope.emplace(*context);
    for (int round = 0; round < flags.rounds; ++round)
      for (size_t kind = 0; kind < kinds.size(); ++kind) {
        together.arrive_and_wait();
        const double start = clock.nanoseconds();
        Status status = kinds[kind](thread);
        samples[thread][kind].push_back((clock.nanoseconds() - start) / 1e3 / callsPerRound);
        if (status.isOk() && settle)
          status = settle(thread);
        if (!status.isOk())
          failures[thread] = std::move(status);
      }
  });
  std::vector<std::vector<double>> all(kinds.size());
  for (size_t thread = 0; thread < count; ++thread) {
    NSA_RETURN_IF_ERROR(failures[thread]);
    for (size_t kind = 0; kind < kinds.size(); ++kind) // the first round warms up
      all[kind].insert(all[kind].end(), samples[thread][kind].begin() + 1, samples[thread][kind].end());
  }
  return all;
}

Status LaunchBench::measureMemory() {
  NSA_ASSIGN_OR_RETURN(tools::EngineHandle engine, openEngine(NSA_MISS_FAIL, manyPath));
  std::vector<nsa_spec> specs;
  std::vector<nsa_maxima> maxima;
  std::vector<double> known;
  const CallClock clock(1);
  for (const LaunchRequest &request : distinct) {
    const double start = clock.nanoseconds();
    NSA_RETURN_IF_ERROR(tools::createPlan(engine.get(), request.spec, request.maxima).status());
    known.push_back((clock.nanoseconds() - start) / 1e3);
    specs.push_back(capi::convert(request.spec));
    maxima.push_back(capi::convert(request.maxima));
  }
  NSA_RETURN_IF_ERROR(add("plan from a warm database, a loaded kernel", 1, clock.name(), known));

  auto plans = [&](size_t thread, bool oneSpec) -> Status {
    const size_t count = specs.size();
    for (size_t i = 0; i < count; ++i) {
      // Threads begin at different places of the same walk.
      const size_t at = oneSpec ? 0 : (i + thread * count / static_cast<size_t>(flags.threads)) % count;
      nsa_plan *plan = nullptr;
      nsa_error error;
      if (nsa_plan_create_with(engine.get(), &specs[at], &maxima[at], nullptr, nullptr, &plan, &error) != NSA_OK)
        return tools::toStatus(error.code);
      nsa_plan_destroy(plan);
    }
    return Status::ok();
  };
  for (const bool oneSpec : {false, true})
    for (const int threads : {1, flags.threads}) {
      NSA_ASSIGN_OR_RETURN(
          const std::vector<std::vector<double>> samples,
          sample(threads, static_cast<int>(specs.size()), {[&](size_t thread) { return plans(thread, oneSpec); }}));
      NSA_RETURN_IF_ERROR(add(oneSpec ? "plan from memory and destroy, one spec"
                                      : "plan from memory and destroy, " + std::to_string(specs.size()) + " specs",
                              threads, CallClock(threads).name(), samples[0]));
    }
  return Status::ok();
}

Status LaunchBench::measureRunsOn(int threads, const BareLaunch &bare, const LaunchRequest &request, nsa_plan *plan,
                                  const std::string &what) {
  constexpr int kCalls = 200; // fewer than a stream's queue holds, so that no call waits for the device
  std::vector<std::unique_ptr<LaunchCaller>> callers;
  for (int i = 0; i < threads; ++i) {
    NSA_ASSIGN_OR_RETURN(std::unique_ptr<LaunchCaller> caller, LaunchCaller::make(flags.device, bare, request, plan));
    callers.push_back(std::move(caller));
  }
  NSA_ASSIGN_OR_RETURN(const std::vector<std::vector<double>> times,
                       sample(
                           threads, kCalls,
                           {[&](size_t thread) { return callers[thread]->bareLaunches(bare, kCalls); },
                            [&](size_t thread) { return callers[thread]->runs(plan, kCalls); }},
                           [&](size_t thread) { return callers[thread]->synchronize(); }, bare.context()));
  const std::vector<double> &bareTimes = times[0], &runTimes = times[1];
  std::vector<double> over;
  std::ranges::transform(runTimes, bareTimes, std::back_inserter(over), std::minus<>());
  const char *clock = CallClock(threads).name();
  const char *bareName = bare.context() ? "bare cuLaunchKernelEx" : "bare call of the worker pool";
  NSA_RETURN_IF_ERROR(add(bareName + what, threads, clock, bareTimes));
  NSA_RETURN_IF_ERROR(add("nsa_run" + what, threads, clock, runTimes));
  return add("nsa_run over the bare launch" + what, threads, clock, over);
}

Status LaunchBench::measureRunsOf(nsa_engine *engine, const LaunchRequest &request, const StoredKernel &kernel,
                                  const std::string &what) {
  NSA_ASSIGN_OR_RETURN(tools::PlanHandle plan, tools::createPlan(engine, request.spec, request.maxima));
  NSA_ASSIGN_OR_RETURN(std::unique_ptr<BareLaunch> bare, BareLaunch::make(flags.device, kernel));
  for (const int threads : {1, flags.threads})
    NSA_RETURN_IF_ERROR(measureRunsOn(threads, *bare, request, plan.get(), what));
  return Status::ok();
}

Status LaunchBench::measureRuns() {
  NSA_ASSIGN_OR_RETURN(tools::EngineHandle engine, openEngine(NSA_MISS_FAIL, real));
  NSA_RETURN_IF_ERROR(measureRunsOf(engine.get(), tinyRequest(), *tinyKernel, ""));
  NSA_ASSIGN_OR_RETURN(Manifest manifest, Manifest::parse(crowdedKernel->manifest));
  // Of GPUs with a copy engine: a launch finds the maps of its tensors, and passes them.
  const auto maps = std::ranges::count(manifest.params, ManifestParam::Kind::kMap, &ManifestParam::kind);
  return maps == 0 ? Status::ok()
                   : measureRunsOf(engine.get(), crowdedRequest(), *crowdedKernel,
                                   ", " + std::to_string(maps) + " tensor maps");
}

Status LaunchBench::run() {
  NSA_RETURN_IF_ERROR(fillDatabases());
  NSA_RETURN_IF_ERROR(measureRuns());
  NSA_RETURN_IF_ERROR(measureDatabase());
  return measureMemory();
}

Status run(const Flags &flags) {
  NSA_ASSIGN_OR_RETURN(tools::ScratchFolder folder, tools::ScratchFolder::make());
  return LaunchBench(flags, std::move(folder)).run();
}

} // namespace
} // namespace nsa::bench

int main(int argc, char **argv) {
  nsa::bench::Flags flags;
  nsa::bench::BenchProgram program("launch", "Measures what planning and running cost beside the kernels.", flags,
                                   "Few specs and kernels");
  program.addDevice();
  program.addCount("--specs", flags.specs, "Distinct specs in memory", 1, nsa::bench::kMostDistinctRequests);
  program.addCount("--threads", flags.threads, "The larger number of threads", 2, 256);
  program.addCount("--rounds", flags.rounds, "Samples of each measurement", 3, 10000);
  return program.run(argc, argv, [&] { return nsa::bench::run(flags); });
}
