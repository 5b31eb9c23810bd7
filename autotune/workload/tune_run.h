// Tunes the kernels that workloads ask for, on one or several devices of this machine. A tuning run continues where an
// earlier run stopped.
// Thread-safety: one thread; it starts one thread for each further device.
#pragma once

#include "autotune/workload/stored_choices.h"
#include "autotune/workload/tune_crossover.h"
#include "autotune/workload/tune_jobs.h"
#include "autotune/workload/tune_record.h"
#include "runtime/engine/options/options.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace nsa {

// What a run takes from the options of an engine, and the revision of the engine's compiler.
struct TuneEnvironment {
  std::string revision, templateDir, cpuFeatures;
  std::shared_ptr<KernelCache> cache;
  RouteRules routes{};
  int compileThreads = 0;
  double kernelSeconds = 0; // the limit for tuning one kernel
  bool exhaustive = false;

  // Opens the compiler library. `options` must be resolved options. `cache` is the cache of the engine that tunes,
  // which may be in memory alone; null stands for a cache of its own over the files that the options name.
  static Result<TuneEnvironment> of(const EngineOptions &options, std::shared_ptr<KernelCache> cache = nullptr);
};

// What errors call the list of devices.
inline constexpr const char *kDeviceField = "device";
// A device that tunes. Devices of one model have one table of choices, so they share its kernels.
struct TuneDevice {
  std::string name; // "cpu", "cuda:1"
  std::string key;  // under which its choices are stored
  bool isGpu = false;
  bool runsStep = false; // the kernel `decode_step`
  // Tunes one kernel, and returns the tuner's report as a JSON text, as Engine::tuneKernel does.
  std::function<Result<std::string>(const TuneJob &job, double budgetSeconds)> tuneKernel;
  // Measures the forward pass against dense attention. Empty: a crossover that is not stored is left.
  MeasureDuel measureDuel{};
};

// What a run tells its caller when it begins something, and when the thing is done.
struct TuneProgress {
  size_t done = 0, total = 0;        // kernels of all devices
  std::optional<double> secondsLeft; // for all kernels; nullopt before the first of them is done
  std::string what;                  // the kernel (TuneJob::text) or the crossover (CrossoverJob::text)
  std::string problem{};             // the kernel's problem key
  Status failure{};                  // of a kernel that could not be tuned
  std::optional<TuneState> state{};  // of a kernel that is done; nullopt for what begins, and for a crossover
  bool isCrossover = false;
  const nlohmann::ordered_json *record = nullptr; // the report's row of what is done; null for what begins
};
// A callback is called by one thread at a time. The answer false ends the run: nothing further begins.
using TuneCallback = std::function<bool(const TuneProgress &progress)>;

// How much a run measures.
struct TuneLimits {
  double budgetSeconds = 0; // for everything together; 0: no limit
  double kernelSeconds = 0; // for each kernel; 0: the engine's budget
  bool again = false;       // tunes also what is stored already
};

struct TuneRunOptions {
  TuneLimits limits{};
  TuneCallback tell{}; // may be empty
  // Adds fields to a row's object `timed`, which describes the timed call. May be empty.
  std::function<void(const TuneJob &job, bool isGpu, nlohmann::ordered_json &timed)> describeTimed{};
};

struct TuneOutcome {
  TuneCounts counts;
  double seconds = 0;
  bool isStopped = false;        // by the callback
  nlohmann::ordered_json report; // docs/tuning.md describes its fields
};

// The outcome also counts the kernels that could not be tuned. The result is an error only when no tuning could begin.
// After the callback has ended a run, the outcome has the kernels that were tuned until then.
Result<TuneOutcome> runWorkloads(const std::vector<Workload> &workloads, const TuneEnvironment &environment,
                                 std::vector<TuneDevice> devices, const TuneRunOptions &options);

} // namespace nsa
