// Runs a candidate kernel of a tuning: once on sequences of different random lengths to compare its results, and then
// on a call as large as the problem to measure its time. A trial leaves the host room to allocate device memory.
// Ownership: a Trial owns the tensors of its calls and borrows the device.
// Thread-safety: one thread at a time.
#pragma once

#include "runtime/base/device_status.h"
#include "runtime/device/loaded_kernel.h"
#include "runtime/engine/tune/tuning_result.h"

#include <functional>
#include <memory>

namespace nsa {

// Launches single kernels without a plan. A TrialLaunches owns the scratch memory of the kernels, which it enlarges
// when a kernel needs more, and the status word in which kernels report bad sequence lengths.
class TrialLaunches {
public:
  // `statusOf` turns what a kernel has reported into a status.
  using StatusOf = std::function<Status(DeviceReport report)>;
  static Result<TrialLaunches> make(Device &device, StatusOf statusOf = deviceStatus);
  TrialLaunches(TrialLaunches &&other) noexcept;
  TrialLaunches &operator=(TrialLaunches &&) = delete;
  ~TrialLaunches();

  // Launches a kernel. On the CPU `launch` itself returns the error of bad sequence lengths. On a GPU the next call of
  // `run` or runAll returns this error.
  Status launch(const LoadedKernel &kernel, const KernelCall &call, void *stream);
  // Launches a kernel on the device's own stream, and waits until the kernel has ended.
  Status run(const LoadedKernel &kernel, const KernelCall &call);
  // Runs several kernels: calls launch(status word, stream), which launches the kernels, and waits for them. Returns an
  // error if a kernel reported bad sequence lengths.
  template <typename Launch> Status runAll(Launch launch) {
    int32_t word[kDeviceStatusWords] = {};
    NSA_RETURN_IF_ERROR(launch(device->isGpu() ? statusWord : word, device->ownStream()));
    return device->isGpu() ? settle() : statusOf({word[0], word[1]});
  }

private:
  TrialLaunches(Device &device, StatusOf statusOf) : device(&device), statusOf(std::move(statusOf)) {}
  Status settle();

  Device *device;
  StatusOf statusOf;
  int32_t *statusWord = nullptr;
  DeviceBuffer scratch;
  size_t scratchBytes = 0;
};

class Trial {
public:
  virtual ~Trial() = default;
  // Runs the kernel once on sequences of random lengths and returns its outputs. `check` fills the outputs with NaN
  // before the run.
  virtual Result<TuningResult> check(const LoadedKernel &kernel) = 0;
  // As `check`, for a kernel of the task's reference (KernelTask::reference), whose arguments have their own order.
  virtual Result<TuningResult> checkReference(const LoadedKernel &kernel) { return check(kernel); }
  // Launches the kernel once, with the tensors of the call whose time is measured. On a GPU launchTimed does not wait
  // until the kernel has ended.
  virtual Status launchTimed(const LoadedKernel &kernel, void *stream) = 0;
  // Returns the sizes of the call whose time is measured: "batch=1 seqlen_q=64 seqlen_k=1024".
  virtual std::string shapeText() const = 0;
  // Returns how much of a whole call is measured (cutText), or "" for the whole call.
  virtual std::string cut() const = 0;
};

// Returns how many of the free bytes the tensors of a trial may take. If `isServing` is true, trialBytes returns fewer
// bytes, because the host uses the device at the same time.
Result<double> trialBytes(Device &device, bool isServing);

// Calls `make` with `bytes`. While memory is short, makeTrialThatFits tries again with half as many bytes. When
// makeTrialThatFits returns, `bytes` is the number of bytes of the last call of `make`.
using MakeTrial = std::function<Result<std::unique_ptr<Trial>>(double bytes)>;
Result<std::unique_ptr<Trial>> makeTrialThatFits(double &bytes, const MakeTrial &make);

} // namespace nsa
