// Checks and times one candidate kernel of decode by running all kernels of a call of decode. The kernels that are
// launched before the candidate make its inputs, and the kernels that are launched after it use its outputs. The
// outputs that are compared are the results that a caller of decode gets.
// Ownership: a DecodeTrial owns the memory of the cache, of the new tokens and of the workspace, and borrows the
// device.
// Thread-safety: one thread at a time.
#pragma once

#include "runtime/engine/choices/kernel_task.h"
#include "runtime/engine/graph/pipeline.h"
#include "runtime/engine/report/timed_shape.h"
#include "runtime/engine/tune/trial.h"

#include <functional>
#include <random>
#include <vector>

namespace nsa {

class DecodeTrial final : public Trial {
public:
  // A DecodeTrial launches the candidate kernel in one step, and the kernels that `Serve` returns in all other steps.
  using Serve = KernelTask::Serve;

  // `part` is a spec of decode, except that its field `op` is the operator of the candidate kernel. If the tensors for
  // all sequences of `maxima` do not fit into `mostBytes`, the trial has fewer sequences. A trial with fewer sequences
  // still launches the kernels of a plan for all sequences of `maxima`, and as many programs share the keys of a query
  // as in a plan for all sequences of `maxima`.
  static Result<std::unique_ptr<Trial>> make(Device &device, const Spec &part, const Maxima &maxima, uint64_t seed,
                                             double mostBytes, const Serve &serve);

  Result<TuningResult> check(const LoadedKernel &kernel) override;
  Status launchTimed(const LoadedKernel &kernel, void *stream) override;
  std::string shapeText() const override { return shape.text(); }
  std::string cut() const override { return cutOfPart; }

private:
  DecodeTrial(Device &device, const Spec &part, const Maxima &maxima, uint64_t seed, TrialLaunches launches);

  Status findKernels(const Serve &serve);
  Status allocate(double mostBytes);
  // Restores the initial contents of each tensor that a call of decode changes.
  Status restore();
  // Allocates the tensor `name` in the shape that it has in a call with `time` new tokens.
  Status add(TensorName name, int64_t time);
  Status addTable();
  // Returns a row-major tensor of the shape that a call with `time` new tokens needs.
  Tensor shaped(TensorName name, void *data, int64_t time) const;
  Bindings bindings(int64_t time) const;
  // Sets the number of tokens that are in the cache before the call.
  Status setLengths(const std::vector<int32_t> &lengths);
  // Runs all kernels of the call, with `kernel` as the candidate kernel.
  Status runAll(const LoadedKernel &kernel, int64_t time, DeviceBuffer &workspace, size_t &workspaceBytes,
                LaunchTap *tap);
  Status recordTimed();

  Device &device;
  Spec spec;
  Maxima maxima;
  CallRules rules;
  Role role = Role::kMain;
  // Whether the candidate kernel writes the cache. A cache that the candidate kernel writes must be restored, so that
  // the wrong output of one candidate is not an input of the next candidate.
  bool writesCache = false;
  std::vector<std::shared_ptr<const LoadedKernel>> servedKernels;
  using RoleKernels = std::array<const LoadedKernel *, kRoles>; // null: the plan has no such kernel
  RoleKernels kernels = {};
  int64_t sequences = 0, room = 0, pages = 0;
  int64_t timedTokens = 0, checkedTokens = 0; // new tokens of each sequence
  uint64_t seed;
  std::mt19937_64 draw;
  struct Memory {
    TensorName name;
    DType dtype;
    int64_t elements;
    DeviceBuffer buffer;
  };
  std::vector<Memory> memory;
  std::vector<ComparedOutput> outputs;
  std::vector<std::vector<int32_t>> checkedLengths; // for each compared run
  DeviceBuffer timedWorkspace, checkedWorkspace;
  size_t timedBytes = 0, checkedBytes = 0;
  KernelCall timedCall;
  TrialLaunches launches;
  TimedShape shape;
  std::string cutOfPart;
};

} // namespace nsa
