// The trial of one of decode's kernels, where it stands: what it reads comes from the kernels before it, and what it
// leaves goes through those behind it, so a candidate is compared by what a caller sees of the whole call.
// Ownership: owns cache, tokens and workspace. Thread-safety: one thread at a time.
#pragma once

#include "runtime/engine/pipeline.h"
#include "runtime/engine/plan.h"
#include "runtime/engine/trial.h"

#include <functional>
#include <random>
#include <vector>

namespace nsa {

class DecodeTrial final : public Trial {
public:
  // The kernel that serves a step when nothing is measured.
  using Serve = std::function<Result<std::shared_ptr<const KernelCore>>(const Spec &spec, const Maxima &maxima)>;

  // `part`: the spec of the kernel, decode's with that operator. The trial has fewer sequences than `maxima` where they
  // would not fit into `mostBytes`, but every choice that follows from the maxima is as for all.
  static Result<std::unique_ptr<Trial>> make(Device &device, const Spec &part, const Maxima &maxima, uint64_t seed,
                                             double mostBytes, const Serve &serve);

  Result<TuningResult> check(const LoadedKernel &kernel) override;
  Status launchTimed(const LoadedKernel &kernel, void *stream) override;
  const std::string &shapeText() const override { return shape; }

private:
  DecodeTrial(Device &device, const Spec &part, const Maxima &maxima, uint64_t seed, TrialLaunches launches);

  Status findKernels(const Serve &serve);
  Status allocate(double mostBytes);
  // Fills what a call changes with what it held at first.
  Status restore();
  // Memory for a tensor, with a shape as the operator's rules say.
  Status add(TensorName name, int64_t time);
  Status addTable();
  // The shape of a tensor with `time` new tokens, row-major.
  Tensor shaped(TensorName name, void *data, int64_t time) const;
  Bindings bindings(int64_t time) const;
  // Tokens in the cache before the call.
  Status setLengths(const std::vector<int32_t> &lengths);
  // Whether the kernel that is measured writes the cache: then a wrong one must leave nothing to the next.
  bool writesCache() const { return role == Role::kAppend || role == Role::kCompress; }
  // All kernels, with `kernel` in the role's place.
  Status runAll(const LoadedKernel &kernel, int64_t time, DeviceBuffer &workspace, size_t &workspaceBytes,
                LaunchTap *tap);
  Status recordTimed();

  Device &device;
  Spec spec;
  Maxima maxima;
  CallRules rules;
  Role role = Role::kMain;
  std::vector<std::shared_ptr<const KernelCore>> cores;
  RoleKernels kernels = {};
  int64_t sequences = 0, room = 0, pages = 0;
  int64_t timedTokens = 0, checkedTokens = 0; // new ones of each sequence
  uint64_t seed;
  std::mt19937_64 draw;
  struct Memory {
    TensorName name;
    int64_t elements;
    DeviceBuffer buffer;
  };
  std::vector<Memory> memory;
  std::vector<ComparedOutput> outputs;
  std::vector<std::vector<int32_t>> checkedLengths; // of each compared run
  DeviceBuffer timedWorkspace, checkedWorkspace;
  size_t timedBytes = 0, checkedBytes = 0;
  KernelCall timedCall;
  TrialLaunches launches;
  std::string shape;
};

} // namespace nsa
