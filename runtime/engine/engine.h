// The engine owns one device, one kernel cache and the plans in memory. An engine belongs to one process
// (engine_handle.h handles forks).
// Ownership: an engine lives until its handle is released and its last plan is given back, in either order.
// Thread-safety: all functions may be called by many threads at once. Making a plan from memory takes only the lock of
// one shard of the pool of plans, if the shard has a plan that was given back, and few threads use the same shard.
// Running a plan uses no member of the engine but the device and one counter.
#pragma once

#include "runtime/engine/choices/pinned_table.h"
#include "runtime/engine/gate_override.h"
#include "runtime/engine/plan/plan_map.h"
#include "runtime/engine/plan/plan_record.h"
#include "runtime/engine/plan/planner.h"
#include "runtime/engine/plan/shared_misses.h"
#include "runtime/engine/plan_pool.h"
#include "runtime/engine/tune/background_tuner.h"
#include "runtime/process/process.h"
#include "runtime/program/program_interface.h"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace nsa {

class Engine;
class Program;
struct TunedSubject;

// Releases the engine's handle. If the caller holds no plan of an engine, destroying the engine's handle destroys the
// engine.
struct EngineRelease {
  void operator()(Engine *engine) const;
};
using EnginePointer = std::unique_ptr<Engine, EngineRelease>;

class Engine {
public:
  // Opens the device. Engine::open leaves the cache, the compiler and NVRTC closed.
  static Result<EnginePointer> open(EngineOptions options, const EngineOptions::Environment &environment);
  // Opens an engine with this engine's options in the child of a fork. openInChild must read only members that never
  // change, because a thread of the parent may have been changing other members when the process forked.
  Result<EnginePointer> openInChild() const;
  bool isOfThisProcess() const { return generation == processGeneration(); }

  Result<PlanPointer> plan(const Spec &spec, const Maxima &maxima, void *stream);
  // Returns a plan whose runs compare each kernel's result with the result of the kernel that defines its operator
  // (comparison.h).
  Result<PlanPointer> planThatCompares(const Spec &spec, const Maxima &maxima, void *stream);
  // Returns what would serve the kernels that have a choice, and those that would fail, in the order of the launches.
  Result<std::vector<ExplainDescription>> choices(const Spec &spec, const Maxima &maxima);
  Result<std::string> explain(const Spec &spec, const Maxima &maxima); // the same as JSON
  // Finds or makes the kernel of a program of one's own (program.h).
  Result<std::unique_ptr<Program>> program(const ProgramSource::Pointer &source, const ProgramValues &values,
                                           void *stream);
  // As `explain` and `tune`, of a program.
  Result<std::string> explainProgram(const ProgramSource::Pointer &source, const ProgramValues &values);
  Result<std::string> tuneProgram(const ProgramSource::Pointer &source, const ProgramValues &values,
                                  double budgetSeconds);
  // Tunes the kernels of the spec. A `budgetSeconds` of 0 means the budget of the engine's options, for each kernel.
  Result<std::string> tune(const Spec &spec, const Maxima &maxima, double budgetSeconds = 0);
  // Tunes one kernel of the spec, named by its problem key.
  Result<std::string> tuneKernel(const Spec &spec, const Maxima &maxima, const std::string &problem,
                                 double budgetSeconds);
  // Returns an error if the engine tunes nothing (Planner::checkTunes).
  Status checkTunes() const { return planner->checkTunes(); }
  std::string describe() const;
  // Returns the kind of the device, its key, the key of its choices (with a folder of templates this key names the
  // folder's content too), and the device's own facts.
  DeviceFacts deviceFacts() const;
  const EngineOptions &settings() const { return options; } // resolved
  std::string deviceName() const;                           // "cpu", "cuda:0"
  const std::string &choiceKey() const { return planner->choiceKey(); }

  Device &device() { return *ownDevice; }
  const Counters &counters() const { return ownCounters; }
  const std::shared_ptr<KernelCache> &kernelCache() const { return cache; }
  CacheCounters cacheCounters() const { return cache->counters(); }
  void countRun() { ownCounters.runs.raise(); }

private:
  friend class Plan;
  friend class Program;
  friend struct EngineRelease;
  Engine() = default;
  static Result<EnginePointer> open(std::unique_ptr<Engine> engine);
  void openLog(); // for each process anew, because the limit has a lock
  Status openDevice();
  Status openCpu();
  Result<std::shared_ptr<const PlanCore>> make(const Spec &spec, const Maxima &maxima);
  // Makes a plan that is not in memory, records that it was asked for, and keeps it in memory. `spec` is the
  // changed spec of `asked`.
  Result<const PlanCore *> makeMissing(const PlanKey &key, const Spec &asked, const Spec &spec, const Maxima &maxima);
  // Tunes the kernels of a plan in the background. Afterwards tuneMeanwhile puts a new PlanCore, which has the fastest
  // kernels, into the map of plans.
  Status tuneMeanwhile(const PlanKey &key, const BackgroundTuner::StopSignal &stop, bool &better);
  // Tunes the kernel of a program in the background, for later programs.
  Status tuneMeanwhile(const KernelTask &task, const BackgroundTuner::StopSignal &stop);
  using TunedKernels = std::map<std::string, std::shared_ptr<const KernelCore>>; // by problem key
  // Gives the plan of a key the tuned kernels. A kernel of the plan that `tune` has tuned meanwhile stays.
  Status takeOver(const PlanKey &key, const TunedKernels &tuned, bool &better);
  // Returns whether a gate override of the engine replaces the tensor GATES in calls of this spec.
  bool overridesGates(const Spec &spec) const { return gateOverride && gateOverride->concerns(spec); }
  // Returns the spec of which the engine makes a plan, and whether it differs from the caller's: where the engine
  // overrides the caller's gates, and where an option forces the kernel `decode_step`.
  Spec changedSpec(Spec spec, const Maxima &maxima) const;
  bool changes(const Spec &spec, const Maxima &maxima) const;
  // Returns the key of a plan. Where a threshold may choose the kernel `decode_step`, the key says for which sizes that
  // kernel is compiled, whatever the threshold says. So no threshold is looked up to find a plan in memory.
  PlanKey keyOf(const Spec &spec, const Maxima &maxima) const;
  // Makes the parts of a plan. Where a threshold takes the kernel `decode_step` and it cannot be had, the parts are the
  // kernels that it replaces. If they cannot be had either, partsOf returns the error of `decode_step`.
  using Steps = std::vector<Step>;
  using MakeParts = std::function<Result<std::vector<PlanCore::Part>>(const Steps &)>;
  Result<std::vector<PlanCore::Part>> partsOf(const Spec &spec, const Maxima &maxima, const MakeParts &makeParts);
  // Adds a requested plan to the engine's plan record, if the engine has a plan record. The record gets plans that were
  // made, and plans that could not be made because a kernel or the compiler was missing. `outcome` is the result of
  // making the plan.
  void keep(const Spec &spec, const Maxima &maxima, ErrorCode outcome);
  // Adds to a miss the command that makes and stores what is missing.
  Status withHint(Status status, const TunedSubject &subject) const;
  // Returns the plan in memory that has the key. Returns nullptr when there is no such plan, or when the device cannot
  // launch its grid for `maxima`.
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
  std::optional<GateOverride> gateOverride; // set when the caller's gates do not count
  std::shared_ptr<KernelCache> cache;
  std::unique_ptr<PlanRecord> record; // null: plans are not recorded
  std::unique_ptr<PinnedTable> pin;   // null: choices come from the cache
  std::unique_ptr<Planner> planner;   // holds kernels, so it is destroyed before the device

  PlanMap plans;
  std::mutex programMutex;
  std::map<std::string, std::shared_ptr<const KernelCore>> programKernels; // in memory, by problem key
  std::optional<PlanPool> pool;
  SharedMisses misses;
  std::optional<BackgroundTuner>
      background; // for that miss policy; the last member, because its thread uses all others
};

} // namespace nsa
