// The kernels of an operator in the order of their launches, and one run of them. The steps are a walk over the
// operator's graph (graph.h), and a run replays a flat list of them.
// Thread-safety: values and pure functions.
#pragma once

#include "runtime/device/device.h"
#include "runtime/engine/call/call.h"
#include "runtime/engine/graph/graph.h"
#include "runtime/engine/graph/workspace.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace nsa {

// One kernel that an operator needs. Each kernel of an operator has its own problem key, so it is stored and tuned
// separately.
struct Step {
  Role role;
  Spec spec;
  Maxima maxima;
  const GraphNode *node; // of the operator's graph
  uint8_t route = 0;     // the Route that the kernel takes
  // The arguments that a launch may have: the operands of the operator and the bindings of the node. A binding has a
  // buffer only if the workspace has it. Plans with and without the branch cmp may share a step, so a run looks at the
  // branches of a binding.
  std::vector<Binding> arguments{};
};
// Returns the shortcuts that may be taken with the given maxima, as a bit mask of Route. Whether a shortcut may be
// taken depends on the exact maxima, but a plan key has only maxima that are rounded up to powers of two. The plan key
// therefore has a separate field for the shortcuts.
uint8_t routesOf(const Spec &spec, const Maxima &maxima);
// Returns the steps of an operator in the order of their launches. `routes` is a bit mask of the shortcuts that are
// taken. The function stepsOf without `routes` takes every shortcut that may be taken with the given maxima.
std::vector<Step> stepsOf(const Spec &spec, const Maxima &maxima);
std::vector<Step> stepsOf(const Spec &spec, const Maxima &maxima, uint8_t routes);

// Returns an error if the kernel of a step takes an argument as another type than the role of the argument's tensor or
// buffer says.
Status checkTypes(const Step &step, const LoadedKernel &kernel);

// Returns the kernel arguments for an operator that is a single kernel. `table` is the table of sequence lengths that
// the kernel `sequences` writes. `table` is absent in the dense layout.
KernelCall singleCall(Operator op, const Call &call, const ViewSlots &table);

// One entry of the flat list that a run of a plan replays. The list is made with the plan.
struct LaunchStep {
  const LoadedKernel *kernel;
  const GraphNode *node;
  std::vector<Binding> arguments; // Step::arguments
};

// Records which kernels a timed run launched, and the time after each launch.
struct LaunchTrace {
  LaunchClock &clock;
  std::vector<Role> launched{};
};

// An interface through which a DecodeTrial receives the arguments of each kernel that a run launches.
class LaunchTap {
public:
  virtual ~LaunchTap() = default;
  virtual void launching(Role role, const KernelCall &kernelCall) = 0;
};

class Comparison;

// One run of an operator. A run keeps all its data on the stack, and only launches kernels.
struct PipelineRun {
  const CallRules &rules;
  std::span<const LaunchStep> launches;
  uint8_t routes; // the shortcuts that the kernels take
  const WorkspaceLayout &layout;
  const Call &call;
  std::byte *workspace;
  const void *statusWord;
  void *stream;
  LaunchTrace *trace = nullptr;
  LaunchTap *tap = nullptr;
  Comparison *comparison = nullptr;

  Status run() const;

private:
  // Launches the kernels of steps, of one chunk of queries or of none.
  Status launch(std::span<const LaunchStep> steps, const KernelCall &base, int64_t first) const;
  // Launches the kernel of a step, if the call needs it. `base` has the arguments that all steps share, and `first` is
  // the first query of the chunk.
  Status launch(const LaunchStep &step, const KernelCall &base, int64_t first) const;
  // In a timed run, the time of the launch is counted for the role `part`.
  Status launch(const LaunchStep &step, const KernelCall &kernelCall, Role part) const;
  bool isWanted(const GraphNode &node) const;
  bool readsLists() const; // whether the kernel of the selected branch reads the lists of blocks
  void bind(const LaunchStep &step, int64_t first, KernelCall &kernelCall) const;
  void bindShares(int32_t branches, KernelCall &kernelCall) const;
  ViewSlots viewOf(Buffer buffer, Order order, int64_t first) const;
};

} // namespace nsa
