// What a caller holds for one spec and its maxima: the kernels of its operator, the rules of its calls, the layout of
// its workspace, its own status word. What the plans of one problem have in common, loaded kernels and how they were
// found, is a PlanCore. Ownership: cores are the engine's and live as long as it; plans are its pool's, and the engine
// outlives them. Thread-safety: immutable while held but for the word; all functions may be called by many threads at
// once.
#pragma once

#include "runtime/engine/fallback_ladder.h"
#include "runtime/engine/pipeline.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace nsa {

class Engine;
struct ComparisonState;

enum class PlanSource { kMemory, kDatabase, kCompiled };
std::string_view planSourceName(PlanSource source); // "memory", "database", "compiled"

struct PlanTimes {
  double lookupMs = 0, renderMs = 0, compileMs = 0, tuneMs = 0, loadMs = 0;
};

// One kernel with how it was found or made.
struct KernelCore {
  std::string problemKey;
  std::shared_ptr<const LoadedKernel> kernel;
  PlanSource source = PlanSource::kMemory;
  bool tuned = false; // measured, on this model
  FallbackStep step = FallbackStep::kExact;
  bool outdated = false;              // of another compiler revision: serves until it is made again in the background
  std::string servedBy;               // of a stored fallback: how its key differs
  std::vector<std::string> fallbacks; // what was tried before and why it did not serve
  PlanTimes times;
};

// The kernels of an operator, in the order of their launches.
struct PlanCore {
  struct Part {
    Step step;
    std::shared_ptr<const KernelCore> kernel;
  };
  PlanCore() = default;
  explicit PlanCore(std::vector<Part> parts);

  std::vector<Part> parts;
  RoleKernels kernels = {};
  uint8_t routes = 0;                      // shortcuts that the steps take
  int32_t keySplits = 0;                   // of their specs
  PlanSource source = PlanSource::kMemory; // what it took: compiling any counts as compiled

  // Whether the device launches every grid that these maxima ask for.
  Status checkGrids(const Spec &spec, const Maxima &maxima) const;
};

class Plan {
public:
  ~Plan();

  Status run(const Bindings &bindings, void *workspace, size_t workspaceBytes, void *stream) const {
    return run(bindings, workspace, workspaceBytes, stream, nullptr);
  }
  // The same, and waits: how long each part of the operator took, in the order of their first launches.
  struct PartTime {
    std::string_view name; // roleName
    int launches = 0;
    double milliseconds = 0; // of all of them
  };
  Result<std::vector<PartTime>> runTimed(const Bindings &bindings, void *workspace, size_t workspaceBytes,
                                         void *stream) const;
  Status status(void *stream);
  size_t workspaceBytes() const { return layout.bytes; }
  // JSON: what the last run of a plan that compares has found.
  Result<std::string> comparisonReport() const;
  // JSON, composed when first asked for.
  const std::string &describe() const;

  // Back to the pool it came from; the last plan of an engine whose handle is gone takes the engine along.
  static void giveBack(Plan *plan);

private:
  friend class Engine;
  friend class PlanPool;
  Plan();
  Status run(const Bindings &bindings, void *workspace, size_t workspaceBytes, void *stream, LaunchTrace *trace) const;
  Status checkNotCapturing(void *stream, const char *rule, const char *hint) const;

  Engine *engine = nullptr;
  const PlanCore *core = nullptr;
  PlanSource source = PlanSource::kMemory; // of this plan, which is memory for the second one of a core
  CallRules rules;
  WorkspaceLayout layout;
  std::unique_ptr<ComparisonState> comparison; // of a plan that compares
  ViewSlots gates;                             // in the place of the caller's; no data: his
  mutable std::atomic<const std::string *> description = nullptr;
  // The pool's.
  int32_t *statusWord = nullptr;
  size_t shard = 0;
  Plan *next = nullptr;
};

struct PlanReturn {
  void operator()(Plan *plan) const { Plan::giveBack(plan); }
};
using PlanPointer = std::unique_ptr<Plan, PlanReturn>;

} // namespace nsa
