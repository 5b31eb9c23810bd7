// The engine: one device, one cache, the plans in memory; all of it belongs to one process (engine_handle.h follows
// forks). Ownership: lives until its handle is released and the last plan is given back, so that either may go first.
// Thread-safety: all functions may be called by many threads at once. Finding a plan in memory locks only what the
// calling thread shares with few others; running one touches nothing of the engine but its device and a count.
#pragma once

#include "runtime/base/process.h"
#include "runtime/engine/background_tuner.h"
#include "runtime/engine/gate_override.h"
#include "runtime/engine/pinned_table.h"
#include "runtime/engine/plan_map.h"
#include "runtime/engine/plan_pool.h"
#include "runtime/engine/planner.h"

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace nsa {

class Engine;

// The engine's handle: gives it up, which ends the engine when no plan is held.
struct EngineRelease {
  void operator()(Engine *engine) const;
};
using EnginePointer = std::unique_ptr<Engine, EngineRelease>;

class Engine {
public:
  // Opens the device; neither the cache nor the compiler nor NVRTC.
  static Result<EnginePointer> open(EngineOptions options, const EngineOptions::Environment &environment);
  // An engine like this one, which is the parent's, for the child of a fork. Reads only what never changes.
  Result<EnginePointer> openInChild() const;
  bool isOfThisProcess() const { return generation == processGeneration(); }

  Result<PlanPointer> plan(const Spec &spec, const Maxima &maxima, void *stream);
  // The same, whose runs compare each kernel's result with what defines it (comparison.h).
  Result<PlanPointer> planThatCompares(const Spec &spec, const Maxima &maxima, void *stream);
  Result<std::string> explain(const Spec &spec, const Maxima &maxima);
  Result<std::string> tune(const Spec &spec, const Maxima &maxima);
  // One kernel of the spec, by its problem key; a budget of 0 is the engine's own.
  Result<std::string> tuneKernel(const Spec &spec, const Maxima &maxima, const std::string &problem,
                                 double budgetSeconds);
  std::string describe() const;

  Device &device() { return *ownDevice; }
  const Counters &counters() const { return ownCounters; }
  CacheCounters cacheCounters() const { return cache->counters(); }
  void countRun() { ownCounters.runs.raise(); }

private:
  friend class Plan;
  friend struct EngineRelease;
  Engine() = default;
  static Result<EnginePointer> open(std::unique_ptr<Engine> engine);
  void openLog(); // of this process: the limit has a lock
  Status openDevice();
  Status openCpu();
  Result<std::shared_ptr<const PlanCore>> make(const Spec &spec, const Maxima &maxima);
  // Puts the winners in the place of what was served.
  Status tuneMeanwhile(const BackgroundTuner::Job &job, const BackgroundTuner::StopSignal &stop);
  // What is computed in the place of what was asked, where the gates are the engine's.
  bool overridesGates(const Spec &spec) const { return gateOverride && gateOverride->concerns(spec); }
  Status withHint(Status status, const Spec &spec, const Maxima &maxima) const;
  // nullptr: not in memory, or its grid does not fit the device with exactly these maxima.
  const PlanCore *findInMemory(const PlanKey &key, const Spec &spec, const Maxima &maxima) const;
  Status addComparison(Plan &comparing, const Maxima &maxima, void *stream);
  Result<PlanPointer> hand(const PlanCore &core, PlanSource source, const Spec &spec, const Maxima &maxima);
  void takeBack(Plan *plan);
  void release();

  const uint32_t generation = processGeneration();
  EngineOptions options; // resolved
  Logger logger;
  std::string gpuTrouble;
  Counters ownCounters;
  std::unique_ptr<Device> ownDevice;
  std::optional<GateOverride> gateOverride; // where the caller's gates do not count
  std::unique_ptr<KernelCache> cache;
  std::unique_ptr<PinnedTable> pin; // null: choices come from the cache
  std::unique_ptr<Planner> planner; // holds kernels, which must go before the device

  PlanMap plans;
  std::optional<PlanPool> pool;
  // Misses of one problem wait for each other and find the first one's plan; other problems rarely share a lock.
  std::array<std::mutex, 16> missMutexes;
  std::optional<BackgroundTuner> background; // of the policy; last, as its thread uses all of the above
};

} // namespace nsa
