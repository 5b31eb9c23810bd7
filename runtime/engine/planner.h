// Finds or makes the kernel of a spec: database, then what else is stored (fallback_ladder.h) and the miss policy.
// Memory is the engine's own affair.
// Ownership: borrows device, cache, options and counters from its engine; owns the loaded kernels.
// Thread-safety: all functions may be called by many threads at once, in many processes with one cache: what one makes,
// the others wait for (docs/cache_format.md, "Many processes").
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
  // `choiceDevice` is the device's name in the store: its key, and with a template folder what that holds.
  // `pin`: where choices come from, and from nowhere else; null: from the cache.
  Planner(Device &device, std::string choiceDevice, KernelCache &cache, PinnedTable *pin, const EngineOptions &options,
          const Logger &logger, Counters &counters);

  // One search, from which the kernel's core is filled; of one thread at a time.
  struct Search {
    Spec spec;
    Maxima maxima;
    Problem problem;
    std::shared_ptr<KernelCore> core;
    double tuneBudgetSeconds = 0; // 0: the engine's
    bool waits = true;            // false: what another compiler revision made serves, and others make it again
    Stopwatch watch{};
    std::optional<KernelCache::Hit> refused{};    // the last row that was found and did not serve
    std::optional<KernelCache::Hit> superseded{}; // of another compiler revision, with nothing else against it
    std::optional<std::vector<Rung>> rungs{};     // what else is stored, once it was looked for
  };
  Search begin(const Spec &spec, const Maxima &maxima) const;
  // Null: not served by the database; the reason, if worth telling, is among the core's fallbacks.
  std::shared_ptr<const KernelCore> find(Search &search);
  // What the miss policy says, of a search that found nothing.
  Result<std::shared_ptr<const KernelCore>> make(Search &search);
  // Tunes and stores, whatever the store says, and where the policy is not to fail; takes the result of another caller
  // that tunes the same at this moment. `report` receives JSON. A kernel without choices is only found or made, and
  // leaves the report empty. When the budget ends before anything is measured, the stored winner serves, or else the
  // default.
  Result<std::shared_ptr<const KernelCore>> tune(const Spec &spec, const Maxima &maxima, std::string &report,
                                                 double budgetSeconds = 0);
  // Tunes for plans to come while something lesser serves, or makes again what is outdated; takes what another process
  // makes at this moment. `stop` is asked between steps. Compiles on the calling thread alone, as the host has work of
  // its own.
  Result<std::shared_ptr<const KernelCore>> tuneMeanwhile(const Step &step, const std::function<bool()> &stop);
  // The kernel that defines the operator: the tile program with its first configuration. Compiled, and not stored.
  Result<std::shared_ptr<const KernelCore>> define(const Step &step);
  // The device as choices name it.
  const std::string &choiceKey() const { return choiceDevice; }
  // What decides of an operator before its kernels are looked up.
  Routing route(const Spec &spec, const Maxima &maxima);
  // So that a later compilation finds it open.
  void openCompiler() { (void)compiler(); }
  // What `make` would do, as JSON. Compiles and stores nothing; like it, opens no compiler where the policy is to fail.
  Result<std::string> explain(const Step &step, const RouteDescription &route, bool inMemory);

private:
  // The choices that this engine follows.
  std::optional<KernelCache::Hit> lookUp(const std::string &problem, const std::string &chosenOn);
  std::optional<KernelCache::Hit> peek(const std::string &problem, const std::string &chosenOn);
  std::vector<ChoiceSummary> choicesOf(const std::string &op) { return pin ? pin->choicesOf(op) : cache.choicesOf(op); }
  const std::string &choicesPath() const { return pin ? pin->path() : cache.path(); }
  // Nothing, and a word about it, when the row is damaged or foreign.
  std::optional<Manifest> accept(Search &search, const KernelCache::Hit &hit, const std::string &target) const;
  std::shared_ptr<const KernelCore> load(Search &search, const KernelCache::Hit &hit, Manifest manifest);
  std::shared_ptr<const KernelCore> refuse(Search &search, const Status &status) const; // null
  bool isSuperseded(const Manifest &manifest);
  // Whether another compiler revision made what serves without waiting for it to be made again.
  bool isOutdated(Search &search, const Manifest &manifest);
  // What `find` put aside as superseded: by one of those who found it. Null: it serves in no form.
  std::shared_ptr<const KernelCore> remake(Search &search, const std::function<bool()> &stop = {});
  std::shared_ptr<const KernelCore> makeAgain(Search &search, const KernelCache::Hit &hit, FallbackStep step);
  // The first stored fallback of those wanted that serves; null: none.
  enum class Rungs { kAny, kBetterThanCompiling };
  std::shared_ptr<const KernelCore> descend(Search &search, Rungs wanted);
  // What beats an unmeasured default. A kernel for other lengths that was not measured is that default, if it is of the
  // template that a measured threshold names for this length; which configuration is the first does not depend on it.
  static bool isBetterThanCompiling(const Rung &rung, std::string_view routed);
  std::shared_ptr<const KernelCore> serveRung(Search &search, const Rung &rung);
  LadderRequest ladderRequest(const Search &search) const;
  const std::vector<Rung> &rungsOf(Search &search);
  // Whether the engine may take the step for an operator. Without choices all its kernels are equal, so what is stored
  // for other lengths, or compiled, is no fallback. Nor is it one to compile a stored choice again (`makeAgain`).
  bool allows(Operator op, FallbackStep step) const { return !isTuned(op) || options.fallbacks->allows(step); }
  bool mayCompile(Operator op) const;
  Rungs rungsBeforeCompiling(Operator op) const;
  void explainStored(Search &search, ExplainDescription &explain);
  void explainLadder(Search &search, ExplainDescription &explain);
  void countFallback(Search &search, FallbackStep step, const std::string &text);
  // `stop`: asked while it waits; true ends the wait.
  std::unique_ptr<KeyLease> claim(const Search &search, const std::string &work, const std::function<bool()> &isDone,
                                  const std::function<bool()> &stop = {});
  std::chrono::milliseconds longestWait(std::string_view work) const;
  // The template that alone may serve an operator; "" when any may.
  std::string forcedTemplate(Operator op) const { return hasVariants(op) ? options.forceVariant : ""; }
  // "" when this engine may run what was found; else why it passes it over, although nothing is wrong with it.
  std::string whyPassedOver(const StoredChoice &choice, const Manifest &manifest) const;
  // The measured threshold that guides problems without a choice of their own, and the template that it names for one.
  std::optional<StoredRoute> routeOf(const Search &search);
  std::optional<StoredRoute> storedRoute(const std::string &family, std::string_view name);
  static std::string_view templateOf(const Search &search, const StoredRoute &route);
  void followRoute(const Search &search, std::vector<Candidate> &candidates);
  Result<std::shared_ptr<const KernelCore>> compileDefault(Search &search);
  Result<std::shared_ptr<const KernelCore>> tuneNow(Search &search, std::string *report,
                                                    const std::function<bool()> *stop = nullptr);
  // What a tuning without one complete round is to those who want a winner.
  Status unmeasured(const Search &search) const;
  // The stored kernel of a spec, or its default: what serves while another one is measured.
  Result<std::shared_ptr<const KernelCore>> serve(const Spec &spec, const Maxima &maxima);
  Status cacheMiss(const Search &search);

  // Loads or finds the kernel and completes the core with it.
  Status adopt(Search &search, std::string content, Manifest manifest, std::span<const std::byte> binary);
  // How a kernel came to be a problem's choice.
  struct Origin {
    bool tuned = false;
    std::string provenance{};
    std::vector<Measurement> evidence{};
  };
  // Why the choice was not kept; a plan goes on without.
  Status store(const Search &search, const CompiledKernel &kernel, Origin origin);
  // Of the same config, compiled again.
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
  std::unordered_map<std::string, std::shared_ptr<const LoadedKernel>> kernels; // by content; as long as the engine
  std::mutex toldMutex;
  std::set<std::string> told; // problems whose fallback was logged
};

} // namespace nsa
