// Finds or makes the kernel of a spec. The planner looks for a kernel of the problem in the database and the packs,
// then for a stored fallback (fallback_ladder.h), and then does what the miss policy says. The engine looks for plans
// in memory before it calls the planner.
// Ownership: a planner borrows device, cache, options and counters from its engine, and owns the loaded kernels.
// Thread-safety: all functions may be called by many threads at once, and by many processes with one cache. When one
// caller makes a kernel, the other callers that need the kernel wait for it (docs/cache_format.md, "Many processes").
#pragma once

#include "runtime/base/problem.h"
#include "runtime/engine/choices/fallback_ladder.h"
#include "runtime/engine/choices/kernel_cache.h"
#include "runtime/engine/compile/candidate_memo.h"
#include "runtime/engine/compile/compiler_library.h"
#include "runtime/engine/graph/plan_core.h"
#include "runtime/engine/options/options.h"
#include "runtime/engine/plan/routing.h"
#include "runtime/engine/report/counters.h"
#include "runtime/engine/report/stopwatch.h"
#include "runtime/process/log.h"

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
  // The planner takes choices from `choices`, and stores what it makes in `cache`.
  Planner(Device &device, std::string choiceDevice, KernelCache &cache, ChoiceSource &choices,
          const EngineOptions &options, const Logger &logger, Counters &counters);

  // The state of one search for a kernel. The functions that find or make the kernel store it in the member `core`.
  // Only one thread at a time may use a Search.
  struct Search {
    Spec spec;
    Maxima maxima;
    Problem problem;
    std::shared_ptr<KernelCore> core;
    double tuneBudgetSeconds = 0; // 0: the engine's budget
    // If `waits` is true, a stored kernel of another compiler revision is compiled again before it is used. If `waits`
    // is false, a stored kernel of another compiler revision is used at once and compiled again in the background.
    bool waits = true;
    Stopwatch watch{};
    std::optional<ChoiceSource::Hit> refused{};    // the last row that was found and could not serve
    std::optional<ChoiceSource::Hit> superseded{}; // a row that could serve, but that another compiler revision made
    std::optional<std::vector<Rung>> rungs{};      // the stored fallbacks, once they were looked for
  };
  Search begin(const Spec &spec, const Maxima &maxima) const;
  // Looks for a stored kernel of the problem. `find` returns null if no stored kernel can be used. If a row was refused
  // for a reason that matters to a user, the reason is added to `search.core->fallbacks`.
  std::shared_ptr<const KernelCore> find(Search &search);
  // Follows the miss policy. `make` may only be called after `find` returned null.
  Result<std::shared_ptr<const KernelCore>> make(Search &search);
  // Tunes the kernel and stores the winner, even if a choice is already stored. Under the policy `fail`, calling `tune`
  // is an error. If another thread or process is tuning the same problem, `tune` waits and takes the result of that
  // tuning. `report` receives JSON. A kernel of an operator that has only one candidate is found or made without
  // tuning, and `report` stays empty. If the budget ends before a candidate was measured, `tune` returns the kernel of
  // the stored choice, or else the default kernel.
  Result<std::shared_ptr<const KernelCore>> tune(const Spec &spec, const Maxima &maxima, std::string &report,
                                                 double budgetSeconds = 0);
  // Tunes the kernel of a step in the background, so that later plans get the winner, or compiles an outdated kernel
  // again. Where another process makes the same kernel at this moment, tuneMeanwhile takes that kernel. tuneMeanwhile
  // ends early once `stop` returns true. tuneMeanwhile compiles on the calling thread alone, because the host needs the
  // rest of the cores.
  Result<std::shared_ptr<const KernelCore>> tuneMeanwhile(const Step &step, const std::function<bool()> &stop);
  // Compiles the kernel that defines the results of the operator of `step`: the tile program with the first
  // configuration in the compiler's list that compiles. `define` does not store the kernel in the database.
  Result<std::shared_ptr<const KernelCore>> define(const Step &step);
  // Returns the name under which choices for this device are stored.
  const std::string &choiceKey() const { return choiceDevice; }
  // Returns which routes (pipeline.h, Route) the measured thresholds choose for an operator, and how many programs
  // share the keys of a query of decode.
  Routing route(const Spec &spec, const Maxima &maxima);
  // Opens the compiler library early, so that a later compilation need not open it.
  void openCompiler() { (void)compiler(); }
  // Returns a description of what `make` would do. `explain` compiles and stores nothing. Under the policy `fail`
  // neither `make` nor `explain` opens the compiler.
  ExplainDescription explain(const Step &step, const RouteDescription &route, bool inMemory);

private:
  static PlanSource sourceOf(const ChoiceSource::Hit &hit) {
    return hit.layer > 0 ? PlanSource::kPack : PlanSource::kDatabase;
  }
  // Parses the manifest of a stored kernel and checks it. `accept` logs a warning and returns nullopt if the manifest
  // is damaged or belongs to another problem.
  std::optional<Manifest> accept(Search &search, const ChoiceSource::Hit &hit, const std::string &target) const;
  std::shared_ptr<const KernelCore> load(Search &search, const ChoiceSource::Hit &hit, Manifest manifest);
  std::shared_ptr<const KernelCore> refuse(Search &search, const Status &status) const; // always returns null
  bool isSuperseded(const Manifest &manifest);
  // Returns true if another compiler revision made the kernel and `search.waits` is false: the kernel is then used at
  // once, and compiled again in the background.
  bool isOutdated(Search &search, const Manifest &manifest);
  // `find` stores in `search.superseded` a usable kernel that another compiler revision made. `remake` compiles the
  // kernel in `search.superseded` again. If several callers of `remake` need the same kernel, only one of them compiles
  // it. `remake` returns null if no kernel of the problem can be used.
  std::shared_ptr<const KernelCore> remake(Search &search, const std::function<bool()> &stop = {});
  std::shared_ptr<const KernelCore> makeAgain(Search &search, const ChoiceSource::Hit &hit, FallbackStep step);
  // Tries the stored fallbacks in their order and returns the first kernel that can be used. With kBetterThanCompiling,
  // `descend` tries only fallbacks that are better than compiling the default. `descend` returns null if no kernel can
  // be used.
  enum class Rungs { kAny, kBetterThanCompiling };
  std::shared_ptr<const KernelCore> descend(Search &search, Rungs wanted);
  // Returns true if the planner should use the stored kernel `rung` and not compile the default configuration. `simple`
  // says on which side of a measured threshold the problem's length is; it has no value if no threshold applies. If
  // `simple` is true, the result is false for kernels of all templates but the simple one; if `simple` is false, the
  // result is false for kernels of the simple template. For a kernel that was stored for other lengths on this device
  // model the result is true even if the kernel was not measured, because the default configuration does not depend on
  // the length. For a kernel that was stored for another device model of the same architecture the result is true
  // only if the kernel was measured. For other fallbacks the result is false.
  static bool isBetterThanCompiling(const Rung &rung, std::optional<bool> simple);
  std::shared_ptr<const KernelCore> serveRung(Search &search, const Rung &rung);
  LadderRequest ladderRequest(const Search &search) const;
  const std::vector<Rung> &rungsOf(Search &search);
  // Returns whether the engine's option `fallbacks` allows a kind of fallback (FallbackStep) for an operator. If an
  // operator has only one candidate, every kind of fallback is allowed, because all stored kernels of the operator have
  // the same configuration. Compiling a stored choice again (`makeAgain`) does not count as a fallback.
  bool allows(Operator op, FallbackStep step) const { return !isTuned(op) || options.fallbacks->allows(step); }
  bool mayCompile(Operator op) const;
  Rungs rungsBeforeCompiling(Operator op) const;
  void explainStored(Search &search, ExplainDescription &explain);
  void explainLadder(Search &search, ExplainDescription &explain);
  void countFallback(Search &search, FallbackStep step, const std::string &text);
  // Takes the lease (cache/lease.h) on making the kernel of `search`, and waits while another caller has this lease.
  // `work` names the kind of work, for example "tune". If `claim` returns null, the caller works without a lease.
  // `claim` calls `stop` while it waits, and stops waiting if `stop` returns true.
  std::unique_ptr<KeyLease> claim(const Search &search, const std::string &work, const std::function<bool()> &isDone,
                                  const std::function<bool()> &stop = {});
  std::chrono::milliseconds longestWait(std::string_view work) const;
  // Returns the template that the option force_variant sets for an operator, or "" if any template may be used.
  std::string forcedTemplate(Operator op) const { return hasVariants(op) ? options.forceVariant : ""; }
  // Returns "" if this engine may use an undamaged stored kernel, or else the reason why it may not, for example the
  // option force_variant.
  std::string whyPassedOver(const StoredChoice &choice, const Manifest &manifest) const;
  // Returns the measured threshold that decides which template is used for a problem without a stored choice.
  std::optional<StoredRoute> routeOf(const Search &search);
  std::optional<StoredRoute> storedRoute(const std::string &family, std::string_view name);
  // Returns true if the problem's length is below the threshold, where the simple template is faster.
  static bool wantsSimple(const Search &search, const StoredRoute &route);
  void followRoute(const Search &search, std::vector<Candidate> &candidates);
  Result<std::shared_ptr<const KernelCore>> compileDefault(Search &search);
  Result<std::shared_ptr<const KernelCore>> tuneNow(Search &search, std::string *report,
                                                    const std::function<bool()> *stop = nullptr);
  // Returns the error that the budget of a tuning ended before a winner was measured.
  Status unmeasured(const Search &search) const;
  // Returns the stored kernel of a spec, or else its default kernel, for the steps of decode that a DecodeTrial does
  // not measure.
  Result<std::shared_ptr<const LoadedKernel>> serve(const Spec &spec, const Maxima &maxima);
  Status cacheMiss(const Search &search);

  // Stores a kernel in `search.core` as the result of the search. `adopt` loads the kernel unless a kernel with the
  // same content is already loaded.
  Status adopt(Search &search, std::string content, Manifest manifest, std::span<const std::byte> binary);
  // How a choice was made: whether it was measured, by which versions, and the measurements of all candidates.
  struct Origin {
    bool tuned = false;
    std::string provenance{};
    std::vector<Measurement> evidence{};
  };
  // Stores a kernel and the choice that names it. If the choice cannot be stored, `store` returns an error that says
  // why. The planner makes the plan even if the choice cannot be stored.
  Status store(const Search &search, const CompiledKernel &kernel, Origin origin);
  // Returns the Origin to store for a choice whose kernel was compiled again with the same configuration.
  Origin originOfRemade(const StoredChoice &choice) const;
  void dump(const CompileRequest &request, const CompiledKernel &kernel);
  CompileRequest request(const Search &search) const;
  Result<std::shared_ptr<const CompilerLibrary>> compiler();
  std::string provenance() const;

  Device &device;
  std::string choiceDevice;
  KernelCache &cache;
  ChoiceSource &choices;
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
