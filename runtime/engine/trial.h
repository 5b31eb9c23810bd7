// What a candidate kernel is compared and timed on: one run with drawn, uneven lengths, and one as large as the
// problem. Ownership: trials own their tensors and borrow the device. Thread-safety: one thread at a time.
#pragma once

#include "runtime/base/device_status.h"
#include "runtime/engine/loaded_kernel.h"
#include "runtime/engine/tuning_inputs.h"
#include "runtime/engine/tuning_result.h"

#include <memory>
#include <string>

namespace nsa {

// Launches of single kernels outside of a plan: scratch that grows, and what kernels say of their lengths.
class TrialLaunches {
public:
  static Result<TrialLaunches> make(Device &device);
  TrialLaunches(TrialLaunches &&other) noexcept;
  TrialLaunches &operator=(TrialLaunches &&) = delete;
  ~TrialLaunches();

  // On the CPU it reports bad lengths at once, on a GPU the next run does.
  Status launch(const LoadedKernel &kernel, const KernelCall &call, void *stream);
  // One launch on the device's own stream, to its end.
  Status run(const LoadedKernel &kernel, const KernelCall &call);
  // A run of several kernels: calls launch(status word, stream), waits, and reports as `launch` does.
  template <typename Launch> Status runAll(Launch launch) {
    int32_t word[kDeviceStatusWords] = {};
    NSA_RETURN_IF_ERROR(launch(device->isGpu() ? statusWord : word, device->ownStream()));
    return device->isGpu() ? settle() : deviceStatus(word[0], word[1]);
  }

private:
  explicit TrialLaunches(Device &device) : device(&device) {}
  Status settle();

  Device *device;
  int32_t *statusWord = nullptr;
  DeviceBuffer scratch;
  size_t scratchBytes = 0;
};

class Trial {
public:
  virtual ~Trial() = default;
  // One run with drawn lengths into outputs that were poisoned before.
  virtual Result<TuningResult> check(const LoadedKernel &kernel) = 0;
  // One launch with the problem's lengths; on a GPU it does not wait.
  virtual Status launchTimed(const LoadedKernel &kernel, void *stream) = 0;
  // "batch=1 seqlen_q=2048 seqlen_k=2048": what is timed.
  virtual const std::string &shapeText() const = 0;
};

// Of an operator that is one kernel.
class KernelTrial final : public Trial {
public:
  static Result<std::unique_ptr<Trial>> make(Device &device, const Spec &spec, const Maxima &maxima, uint64_t seed,
                                             double mostBytes);

  Result<TuningResult> check(const LoadedKernel &kernel) override;
  Status launchTimed(const LoadedKernel &kernel, void *stream) override;
  const std::string &shapeText() const override { return inputs.shapeText(); }

private:
  KernelTrial(TuningInputs inputs, TrialLaunches launches) : inputs(std::move(inputs)), launches(std::move(launches)) {}

  TuningInputs inputs;
  TrialLaunches launches;
};

} // namespace nsa
