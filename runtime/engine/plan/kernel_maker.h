// Loads stored kernels, compiles kernels and tunes them, as the planner asks for it, and stores what it has made.
// Ownership: a KernelMaker borrows device, cache, options and counters from its engine, and owns the loaded kernels.
// Thread-safety: all functions may be called by many threads at once.
#pragma once

#include "runtime/engine/choices/decision.h"
#include "runtime/engine/choices/kernel_cache.h"
#include "runtime/engine/compile/candidate_memo.h"
#include "runtime/engine/compile/compiler_library.h"
#include "runtime/engine/graph/plan_core.h"
#include "runtime/engine/options/options.h"
#include "runtime/engine/report/counters.h"
#include "runtime/process/log.h"

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace nsa {

class KernelMaker {
public:
  // If `takesChoices` is false, kernels are stored without a choice that names them.
  KernelMaker(Device &device, KernelCache &cache, bool takesChoices, const EngineOptions &options, const Logger &logger,
              Counters &counters)
      : device(device), cache(cache), takesChoices(takesChoices), options(options), logger(logger), counters(counters) {
  }

  // Returns the revision of the compiler, or "" if the compiler cannot be opened. The compiler is opened once.
  std::string compilerRevision();
  // Lists the candidates for a problem in the order of predicted costs.
  Result<std::vector<Candidate>> candidates(const KernelRequest &request);

  // The following functions store the kernel in `core`, together with its source, its times, and whether it was
  // measured.

  Status load(const KernelRequest &request, const Decision &decision, KernelCore &core);
  // Compiles the configuration of a decision's stored kernel again. The result becomes the problem's choice, unless the
  // stored kernel is a fallback.
  Status remake(const KernelRequest &request, const Decision &decision, KernelCore &core);
  // Compiles the first candidate of a decision that compiles and can be launched. Candidates that cannot are added to
  // `request.refusedCandidates`.
  Status compileDefault(KernelRequest &request, const Decision &decision, KernelCore &core);

  struct Tuning {
    double budgetSeconds = 0;                    // 0: the engine's budget
    const std::function<bool()> *stop = nullptr; // null: the caller waits. Otherwise one thread compiles
    std::string *report = nullptr;               // receives JSON
    KernelTask::Serve serve;                     // gives the other kernels of decode
  };
  // Measures the candidates and stores the winner. If the budget ends before a candidate was measured, the kernel is
  // the default, and `core.tuned` is false.
  Status tune(const KernelRequest &request, const Tuning &tuning, KernelCore &core);

  // Compiles the kernel that defines the results of the task: the tile program with the first configuration in the
  // compiler's list that has the task's `referenceChoices` and compiles. `define` does not store the kernel in the
  // database.
  Status define(const KernelRequest &request, KernelCore &core);

private:
  Result<std::shared_ptr<const CompilerLibrary>> compiler();
  CompileRequest compileRequest(const KernelRequest &request) const;
  // Loads the kernel unless a kernel with the same content is already loaded, and checks its grid.
  Status adopt(const KernelRequest &request, std::string content, SharedManifest manifest,
               std::span<const std::byte> binary, KernelCore &core);
  // Counts, tells of and adopts a kernel that was just compiled.
  Status adoptCompiled(const KernelRequest &request, const CompileRequest &by, const CompiledKernel &kernel,
                       KernelCore &core);
  // Logs the warnings about the program's text, and dumps the sources.
  void tell(const CompileRequest &by, const CompiledKernel &kernel);
  // How a choice was made: whether it was measured, by which versions, and the measurements of all candidates.
  struct Origin {
    bool tuned = false;
    std::string provenance{};
    std::vector<Measurement> evidence{};
  };
  // Stores a kernel and the choice that names it. If the choice cannot be stored, `store` returns an error that says
  // why. A plan is made even if the choice cannot be stored.
  Status store(const KernelRequest &request, const CompiledKernel &kernel, Origin origin);
  std::string provenance() const;

  Device &device;
  KernelCache &cache;
  const bool takesChoices;
  const EngineOptions &options;
  const Logger &logger;
  Counters &counters;

  std::mutex compilerMutex;
  std::shared_ptr<const CompilerLibrary> compilerLibrary;
  CandidateMemo memo;
  std::mutex kernelMutex;
  std::unordered_map<std::string, std::shared_ptr<const LoadedKernel>>
      kernels; // by content; they stay as long as the engine
};

} // namespace nsa
