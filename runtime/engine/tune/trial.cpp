#include "runtime/engine/tune/trial.h"

#include <utility>

namespace nsa {

Result<TrialLaunches> TrialLaunches::make(Device &device) {
  TrialLaunches launches(device);
  NSA_ASSIGN_OR_RETURN(launches.statusWord, device.acquireStatusWord());
  return launches;
}

TrialLaunches::TrialLaunches(TrialLaunches &&other) noexcept
    : device(other.device), statusWord(std::exchange(other.statusWord, nullptr)), scratch(std::move(other.scratch)),
      scratchBytes(other.scratchBytes) {}

TrialLaunches::~TrialLaunches() {
  if (statusWord)
    device->releaseStatusWord(statusWord);
}

Status TrialLaunches::launch(const LoadedKernel &kernel, const KernelCall &call, void *stream) {
  const size_t needed = kernel.workspaceBytes();
  if (needed > scratchBytes) {
    NSA_ASSIGN_OR_RETURN(scratch, DeviceBuffer::allocate(*device, needed));
    scratchBytes = needed;
  }
  if (device->isGpu())
    return kernel.launch(call, statusWord, scratch.data(), stream);
  int32_t word[kDeviceStatusWords] = {};
  NSA_RETURN_IF_ERROR(kernel.launch(call, word, scratch.data(), stream));
  return deviceStatus(word[0], word[1]);
}

Status TrialLaunches::run(const LoadedKernel &kernel, const KernelCall &call) {
  NSA_RETURN_IF_ERROR(launch(kernel, call, device->ownStream()));
  return settle();
}

Status TrialLaunches::settle() { return device->readStatusWord(statusWord, device->ownStream()); }

Result<std::unique_ptr<Trial>> KernelTrial::make(Device &device, const Spec &spec, const Maxima &maxima, uint64_t seed,
                                                 double mostBytes) {
  NSA_ASSIGN_OR_RETURN(TuningInputs inputs, TuningInputs::make(device, spec, maxima, seed, mostBytes));
  NSA_ASSIGN_OR_RETURN(TrialLaunches launches, TrialLaunches::make(device));
  return std::unique_ptr<Trial>(new KernelTrial(std::move(inputs), std::move(launches)));
}

Result<TuningResult> KernelTrial::check(const LoadedKernel &kernel) {
  NSA_RETURN_IF_ERROR(inputs.poisonOutputs());
  NSA_RETURN_IF_ERROR(launches.run(kernel, inputs.checked()));
  return inputs.readChecked();
}

Status KernelTrial::launchTimed(const LoadedKernel &kernel, void *stream) {
  return launches.launch(kernel, inputs.timed(), stream);
}

} // namespace nsa
