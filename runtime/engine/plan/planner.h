// Finds or makes the kernel of a spec: the planner decides which kernel serves (decision.h), and then loads, compiles
// or tunes this kernel (kernel_maker.h). The engine looks for plans in memory before it calls the planner.
// Ownership: a planner borrows device, cache, options and counters from its engine, and owns the loaded kernels.
// Thread-safety: all functions may be called by many threads at once, and by many processes with one cache. When one
// caller makes a kernel, the other callers that need the kernel wait for it (docs/cache_format.md, "Many processes").
#pragma once

#include "runtime/engine/choices/decision.h"
#include "runtime/engine/graph/routing.h"
#include "runtime/engine/plan/kernel_maker.h"

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace nsa {

struct ExplainDescription;
struct RouteDescription;

class Planner {
public:
  // `choiceDevice` is the device's name in the store: the device key, and with a template folder also the digest of the
  // folder's content. The planner takes choices from `choices`, and stores what it makes in `cache`.
  Planner(Device &device, std::string choiceDevice, KernelCache &cache, ChoiceSource &choices,
          const EngineOptions &options, const Logger &logger, Counters &counters);

  using Made = Result<std::shared_ptr<const KernelCore>>;
  // The state of one search for a kernel. Only one thread at a time may use a Search.
  struct Search {
    KernelRequest request;
    std::shared_ptr<KernelCore> core;
    std::optional<Decision> decision{}; // what `find` has decided, and later what was executed
    bool isToldOfOwn = false;           // whether the log says why the problem's own choice cannot be used
  };
  Search begin(KernelTask task) const;
  // Returns a stored kernel that can be used at once, or null if `make` must decide again or make a kernel.
  std::shared_ptr<const KernelCore> find(Search &search);
  // Decides, and executes the decision: loads a stored kernel, compiles, tunes, or returns the error of a miss.
  Made make(Search &search);
  // Returns the parts of a plan in the order of the steps, or the error of the first step that has an error. The
  // kernels are looked up one after another, and the missing ones are made at the same time: at most `compileThreads`
  // threads compile, and the caller is one of them. Only the calling thread compiles if at most one kernel is missing,
  // or under the policy `tune`, because other threads that compile would disturb the measured times.
  Result<std::vector<PlanCore::Part>> makeParts(const std::vector<Step> &steps);
  // Tunes the kernel and stores the winner, even if a choice is already stored. Under the policy `fail`, calling `tune`
  // is an error. If another thread or process is tuning the same problem, `tune` waits and takes the result of that
  // tuning. `report` receives JSON. A kernel of an operator that has only one candidate is found or made without
  // tuning, and `report` stays empty. If the budget ends before a candidate was measured, `tune` returns the kernel of
  // the stored choice, or else the default kernel.
  Made tune(KernelTask task, std::string &report, double budgetSeconds = 0);
  // Finds or makes the kernel of one task.
  Made kernelOf(KernelTask task);
  // Tunes the kernel of a task in the background, so that later plans get the winner, or compiles an outdated kernel
  // again. Where another process makes the same kernel at this moment, tuneMeanwhile takes that kernel. tuneMeanwhile
  // ends early once `stop` returns true. tuneMeanwhile compiles on the calling thread alone, because the host needs the
  // rest of the cores.
  Made tuneMeanwhile(KernelTask task, const std::function<bool()> &stop);
  // As KernelMaker::define. Calling `define` is an error under the policy `fail`.
  Made define(KernelTask task);
  // Returns the name under which choices for this device are stored.
  const std::string &choiceKey() const { return choiceDevice; }
  // Returns an error for an engine that tunes nothing, because it has a pinned table or the policy `fail`.
  Status checkTunes() const;
  // Returns which routes (pipeline.h, Route) the measured thresholds choose for an operator, and how many programs
  // share the keys of a query of decode. The kernel `decode_step` may be taken, unless `avoidsStep` is
  // true.
  Routing route(const Spec &spec, const Maxima &maxima, bool avoidsStep = false);
  // Returns whether the device runs the kernel `decode_step`.
  bool mayStep() const { return device.target() == kStepTarget; }
  // Opens the compiler library early, so that a later compilation need not open it.
  void openCompiler() { (void)maker.compilerRevision(); }
  // Returns a description of the decision that `make` would execute. `explain` compiles and stores nothing. Under the
  // policy `fail` neither `make` nor `explain` opens the compiler.
  ExplainDescription explain(KernelTask task, const RouteDescription &route, bool inMemory);

private:
  using Stop = std::function<bool()>;

  ChoicePolicy policyOf(MissPolicy miss, FallbackSteps fallbacks, bool waits) const;
  Decision decideFor(Search &search, const ChoicePolicy &policy);
  // Returns the decision that `execute` executes. If a kernel must be compiled, the decision has its candidates.
  Decision decideToMake(Search &search, const ChoicePolicy &policy);
  // Decides, and executes the decision. If this fails, or if another caller has made the kernel meanwhile, `execute`
  // decides again.
  Made execute(Search &search, const ChoicePolicy &policy, const Stop *stop = nullptr);
  // Does what the decision says, once.
  Status act(Search &search, const ChoicePolicy &policy, const Decision &decision, const Stop *stop);
  // Adds the error of a decision to the request, so that the next decision is another one.
  void addFailure(Search &search, const Decision &decision, const Status &why) const;
  // Loads the stored kernel of the problem, if that is the decision. Returns null otherwise, or if loading fails.
  std::shared_ptr<const KernelCore> loadOwn(Search &search, const Decision &decision);
  std::shared_ptr<const KernelCore> finish(Search &search, const Decision &decision) const;
  // Logs why the problem's own choice cannot be used, once.
  void tellOwn(Search &search, const Decision &decision) const;
  // Counts and logs that a fallback serves.
  void tellFallback(const Search &search, const Decision &decision);
  // Takes the lease (cache/lease.h) on making the kernel of `search`, and waits while another caller has this lease.
  // `work` names the kind of work, for example "tune". If `claim` returns null, the caller works without a lease.
  // `claim` calls `stop` while it waits, and stops waiting if `stop` returns true.
  std::unique_ptr<KeyLease> claim(const Search &search, const std::string &work, const Stop &isDone, const Stop *stop);
  // Returns the stored kernel of a task, or else its default kernel, for the steps of decode that a DecodeTrial does
  // not measure.
  Made serve(KernelTask task);
  KernelMaker::Tuning tuning(const Stop *stop);
  Status cacheMiss(const Search &search, const Decision &decision);

  Device &device;
  const std::string choiceDevice;
  KernelCache &cache;
  ChoiceSource &choices;
  const EngineOptions &options;
  const Logger &logger;
  Counters &counters;
  KernelMaker maker;
  const ChoicePolicy policy; // the engine's
  std::mutex toldMutex;
  std::set<std::string> told; // problems whose fallback was logged
};

} // namespace nsa
