// Finds or makes the kernel of a spec. The planner looks into the database, then at the stored fallbacks
// (fallback_ladder.h), and then follows the miss policy. The engine and not the planner looks for plans in memory.
// Ownership: a planner borrows device, cache, options and counters from its engine, and owns the loaded kernels.
// Thread-safety: all functions may be called by many threads at once, and by many processes with one cache. When one
// caller makes a kernel, the other callers that need the kernel wait for it (docs/cache_format.md, "Many processes").
#pragma once

#include "runtime/base/log.h"
#include "runtime/base/problem.h"
#include "runtime/engine/candidate_memo.h"
#include "runtime/engine/compiler_library.h"
#include "runtime/engine/counters.h"
#include "runtime/engine/fallback_ladder.h"
#include "runtime/engine/kernel_cache.h"
#include "runtime/engine/options.h"
#include "runtime/engine/pinned_table.h"
#include "runtime/engine/plan.h"
#include "runtime/engine/routing.h"
#include "runtime/engine/stopwatch.h"

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

namespace nsa {

struct ExplainDescription;
struct RouteDescription;

class Planner {
public:
  // `choiceDevice` is the device's name in the store: the device key, and with a template folder also the digest of the
  // folder's content.
  // A `pin` is the only table from which choices come. Where `pin` is null, choices come from the cache.
  Planner(Device &device, std::string choiceDevice, KernelCache &cache, PinnedTable *pin, const EngineOptions &options,
          const Logger &logger, Counters &counters);

  // One search for a kernel. A search fills its core. Only one thread at a time may use a Search.
  struct Search {
    Spec spec;
    Maxima maxima;
    Problem problem;
    std::shared_ptr<KernelCore> core;
    double tuneBudgetSeconds = 0; // 0: the engine's budget
    // Where `waits` is true, a kernel of another compiler revision is made again before it serves. Where `waits` is
    // false, a kernel of another compiler revision serves, and is made again in the background.
    bool waits = true;
    Stopwatch watch{};
    std::optional<KernelCache::Hit> refused{};    // the last row that was found and could not serve
    std::optional<KernelCache::Hit> superseded{}; // a row that could serve, but that another compiler revision made
    std::optional<std::vector<Rung>> rungs{};     // the stored fallbacks, once they were looked for
  };
  Search begin(const Spec &spec, const Maxima &maxima) const;
  // Looks into the database. `find` returns null when the database has nothing that serves. Where the reason for a
  // refused row matters to a user, the core's fallbacks contain the reason.
  std::shared_ptr<const KernelCore> find(Search &search);
  // Follows the miss policy. `find` must have found nothing before `make` is called.
  Result<std::shared_ptr<const KernelCore>> make(Search &search);
  // Tunes and stores the winner, even where a choice is stored. Under the policy `fail`, calling `tune` is an error.
  // When another caller tunes the same problem at this moment, `tune` waits and takes the other's result. `report`
  // receives JSON. A kernel without choices is only found or made, and its report stays empty. When the budget ends
  // before anything was measured, the stored winner serves, or else the default.
  Result<std::shared_ptr<const KernelCore>> tune(const Spec &spec, const Maxima &maxima, std::string &report,
                                                 double budgetSeconds = 0);
  // Tunes in the background for later plans, or makes an outdated kernel again. Where another process makes the same
  // kernel at this moment, tuneMeanwhile takes that kernel. tuneMeanwhile asks `stop` between its steps. tuneMeanwhile
  // compiles on the calling thread alone, because the host needs the rest of the cores.
  Result<std::shared_ptr<const KernelCore>> tuneMeanwhile(const Step &step, const std::function<bool()> &stop);
  // Compiles the kernel that defines the operator: the tile program with its first configuration. The defining kernel
  // is not stored.
  Result<std::shared_ptr<const KernelCore>> define(const Step &step);
  // Returns the device's name in choices.
  const std::string &choiceKey() const { return choiceDevice; }
  // Returns the thresholds that apply to an operator before its kernels are looked up.
  Routing route(const Spec &spec, const Maxima &maxima);
  // Opens the compiler library early, so that a later compilation need not open it.
  void openCompiler() { (void)compiler(); }
  // Describes as JSON what `make` would do. `explain` compiles and stores nothing. Under the policy `fail` neither
  // `make` nor `explain` opens the compiler.
  Result<std::string> explain(const Step &step, const RouteDescription &route, bool inMemory);

private:
  // The functions that look up choices take them from the pinned table, or else from the cache.
  std::optional<KernelCache::Hit> lookUp(const std::string &problem, const std::string &chosenOn);
  std::optional<KernelCache::Hit> peek(const std::string &problem, const std::string &chosenOn);
  std::vector<ChoiceSummary> choicesOf(const std::string &op) { return pin ? pin->choicesOf(op) : cache.choicesOf(op); }
  std::string placesOfChoices() { return pin ? pin->path() : cache.places(); }
  static PlanSource sourceOf(const KernelCache::Hit &hit) {
    return hit.layer > 0 ? PlanSource::kPack : PlanSource::kDatabase;
  }
  // Parses and checks the manifest of a row. Returns nullopt, with a warning, when the row is damaged or foreign.
  std::optional<Manifest> accept(Search &search, const KernelCache::Hit &hit, const std::string &target) const;
  std::shared_ptr<const KernelCore> load(Search &search, const KernelCache::Hit &hit, Manifest manifest);
  std::shared_ptr<const KernelCore> refuse(Search &search, const Status &status) const; // always returns null
  bool isSuperseded(const Manifest &manifest);
  // Returns whether another compiler revision made a kernel that serves before it is made again.
  bool isOutdated(Search &search, const Manifest &manifest);
  // Makes again the kernel that `find` put aside as superseded. Of several callers only one makes a superseded kernel
  // again. `remake` returns null when no kernel serves.
  std::shared_ptr<const KernelCore> remake(Search &search, const std::function<bool()> &stop = {});
  std::shared_ptr<const KernelCore> makeAgain(Search &search, const KernelCache::Hit &hit, FallbackStep step);
  // Returns the first stored fallback that serves, of the wanted rungs. `descend` returns null when no stored fallback
  // serves.
  enum class Rungs { kAny, kBetterThanCompiling };
  std::shared_ptr<const KernelCore> descend(Search &search, Rungs wanted);
  // Returns true if a stored kernel should be used instead of compiling the default. `routed` is the template that a
  // measured threshold names for the problem's length, or "". A kernel of another template than `routed` is never
  // better than the default. A kernel that was stored for other lengths on this model is as good as the default even
  // when it was not measured: the configuration of a default does not depend on the length. A kernel of another model
  // is better than the default only if it was measured.
  static bool isBetterThanCompiling(const Rung &rung, std::string_view routed);
  std::shared_ptr<const KernelCore> serveRung(Search &search, const Rung &rung);
  LadderRequest ladderRequest(const Search &search) const;
  const std::vector<Rung> &rungsOf(Search &search);
  // Returns whether the engine may take the step for an operator. All kernels of an operator without choices are equal,
  // so it is no fallback to take a kernel that is stored for other lengths, or to compile one. Compiling a stored
  // choice again (`makeAgain`) is no fallback.
  bool allows(Operator op, FallbackStep step) const { return !isTuned(op) || options.fallbacks->allows(step); }
  bool mayCompile(Operator op) const;
  Rungs rungsBeforeCompiling(Operator op) const;
  void explainStored(Search &search, ExplainDescription &explain);
  void explainLadder(Search &search, ExplainDescription &explain);
  void countFallback(Search &search, FallbackStep step, const std::string &text);
  // Takes the lease on making `work`, and waits while another caller has the lease. A null lease means that the caller
  // works without a lease. `claim` asks `stop` while it waits; true ends the wait.
  std::unique_ptr<KeyLease> claim(const Search &search, const std::string &work, const std::function<bool()> &isDone,
                                  const std::function<bool()> &stop = {});
  std::chrono::milliseconds longestWait(std::string_view work) const;
  // Returns the only template that may serve an operator, or "" when any template may.
  std::string forcedTemplate(Operator op) const { return hasVariants(op) ? options.forceVariant : ""; }
  // Returns "" when this engine may run a found kernel, or else the reason why the engine does not use the kernel
  // although it is intact.
  std::string whyPassedOver(const StoredChoice &choice, const Manifest &manifest) const;
  // The measured threshold that guides problems without a choice of their own, and the template that the threshold
  // names for a problem.
  std::optional<StoredRoute> routeOf(const Search &search);
  std::optional<StoredRoute> storedRoute(const std::string &family, std::string_view name);
  static std::string_view templateOf(const Search &search, const StoredRoute &route);
  void followRoute(const Search &search, std::vector<Candidate> &candidates);
  Result<std::shared_ptr<const KernelCore>> compileDefault(Search &search);
  Result<std::shared_ptr<const KernelCore>> tuneNow(Search &search, std::string *report,
                                                    const std::function<bool()> *stop = nullptr);
  // Makes the error for callers that need a winner when a tuning ended without a complete round.
  Status unmeasured(const Search &search) const;
  // Returns the stored kernel of a spec, or its default. The returned kernel serves while another kernel is measured.
  Result<std::shared_ptr<const KernelCore>> serve(const Spec &spec, const Maxima &maxima);
  Status cacheMiss(const Search &search);

  // Loads a kernel, or finds it among the loaded kernels, and completes the search's core with it.
  Status adopt(Search &search, std::string content, Manifest manifest, std::span<const std::byte> binary);
  // How a kernel came to be a problem's choice.
  struct Origin {
    bool tuned = false;
    std::string provenance{};
    std::vector<Measurement> evidence{};
  };
  // Stores a kernel and the choice that names it. The error of `store` says why the choice was not stored; a plan goes
  // on without a stored choice.
  Status store(const Search &search, const CompiledKernel &kernel, Origin origin);
  // Returns the origin of a choice whose configuration was compiled again.
  Origin originOfRemade(const StoredChoice &choice) const;
  void dump(const CompileRequest &request, const CompiledKernel &kernel);
  CompileRequest request(const Search &search) const;
  Result<std::shared_ptr<const CompilerLibrary>> compiler();
  std::string provenance() const;

  Device &device;
  std::string choiceDevice;
  KernelCache &cache;
  PinnedTable *pin;
  const EngineOptions &options;
  const Logger &logger;
  Counters &counters;

  std::mutex compilerMutex;
  std::shared_ptr<const CompilerLibrary> compilerLibrary;
  CandidateMemo memo;
  std::mutex kernelMutex;
  std::unordered_map<std::string, std::shared_ptr<const LoadedKernel>>
      kernels; // by content; they stay as long as the engine
  std::mutex toldMutex;
  std::set<std::string> told; // problems whose fallback was logged
};

} // namespace nsa
