// A plan runs the operator of one spec. The sizes of a call must be at most the maxima with which the plan was made. A
// plan refers to the kernels of its operator, and has the CallRules by which its calls are checked, the layout of its
// workspace and its own status word. Plans with the same plan key share a PlanCore, which has the loaded kernels and
// how each kernel was found or made.
// Ownership: plan cores belong to the engine and live as long as the engine. Plans belong to the engine's pool, and the
// engine outlives them.
// Thread-safety: all functions may be called by many threads at once. While a caller holds a plan, the kernels, the
// rules and the workspace layout of the plan do not change.
#pragma once

#include "runtime/engine/graph/plan_core.h"
#include "runtime/engine/report/describe.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace nsa {

class Engine;
struct ComparedPart;
struct ComparisonState;

// Checks the workspace of a run.
Status checkWorkspace(const void *workspace, size_t bytes, size_t needed);

class Plan {
public:
  ~Plan();

  Status run(const Bindings &bindings, void *workspace, size_t workspaceBytes, void *stream) const {
    return run(bindings, workspace, workspaceBytes, stream, nullptr);
  }
  // runTimed runs the operator as `run` does, but waits until the run has ended. runTimed returns how long each part of
  // the operator took, in the order of the parts' first launches.
  struct PartTime {
    std::string_view name; // roleName
    int launches = 0;
    double milliseconds = 0; // of all these launches
  };
  Result<std::vector<PartTime>> runTimed(const Bindings &bindings, void *workspace, size_t workspaceBytes,
                                         void *stream) const;
  Status status(void *stream) const;
  size_t workspaceBytes() const { return layout.bytes; }
  // Returns the differences that the last run of a plan that compares has measured.
  Result<std::vector<ComparedPart>> compared() const;
  Result<std::string> comparisonReport() const; // the same as JSON
  // Returns the description of the plan and its kernels as JSON (nsa_plan_describe). The first call of `describe` makes
  // this JSON text, and later calls return the same text.
  const std::string &describe() const;
  // Return parts of the description.
  PlanInfo info() const;
  std::vector<LaunchInfo> launches() const;

  // Returns the plan to the engine's pool of plans. If the engine's handle was released before and no caller holds
  // another plan of this engine, giveBack destroys the engine.
  static void giveBack(Plan *plan);

private:
  friend class Engine;
  friend class PlanPool;
  friend class Program;
  Plan();
  Status run(const Bindings &bindings, void *workspace, size_t workspaceBytes, void *stream, LaunchTrace *trace) const;
  Status checkNotCapturing(void *stream, const char *rule, const char *hint) const;

  Engine *engine = nullptr;
  const PlanCore *core = nullptr;
  PlanSource source = PlanSource::kMemory; // for this plan: kMemory when the core was there before
  CallRules rules;
  WorkspaceLayout layout;
  std::unique_ptr<ComparisonState> comparison; // null unless the plan compares
  ViewSlots gates;                             // replaces the caller's gates; without data the caller's gates count
  PlanDescription facts() const;
  mutable std::atomic<const std::string *> description = nullptr;
  // Only PlanPool uses the members statusWord, shard and next.
  int32_t *statusWord = nullptr;
  size_t shard = 0;
  Plan *next = nullptr;
};

struct PlanReturn {
  void operator()(Plan *plan) const { Plan::giveBack(plan); }
};
using PlanPointer = std::unique_ptr<Plan, PlanReturn>;

} // namespace nsa
