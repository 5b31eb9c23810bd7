#include "runtime/engine/tune/trial.h"

#include <algorithm>
#include <utility>

namespace nsa {

namespace {

// Tensors are not all of a trial, and the next one is made before it goes.
constexpr double kFreeShare = 1.0 / 4, kFreeShareWhileServing = 1.0 / 16;
// No trial is larger, and below the second none becomes smaller.
constexpr double kMostTrialBytes = 10e9, kLeastTrialBytes = 1e6;

} // namespace

Result<TrialLaunches> TrialLaunches::make(Device &device, StatusOf statusOf) {
  TrialLaunches launches(device, std::move(statusOf));
  NSA_ASSIGN_OR_RETURN(launches.statusWord, device.acquireStatusWord());
  return launches;
}

TrialLaunches::TrialLaunches(TrialLaunches &&other) noexcept
    : device(other.device), statusOf(std::move(other.statusOf)), statusWord(std::exchange(other.statusWord, nullptr)),
      scratch(std::move(other.scratch)), scratchBytes(other.scratchBytes) {}

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
  return statusOf({word[0], word[1]});
}

Status TrialLaunches::run(const LoadedKernel &kernel, const KernelCall &call) {
  NSA_RETURN_IF_ERROR(launch(kernel, call, device->ownStream()));
  return settle();
}

Status TrialLaunches::settle() {
  NSA_ASSIGN_OR_RETURN(const DeviceReport report, device->readStatusWord(statusWord, device->ownStream()));
  return statusOf(report);
}

Result<double> trialBytes(Device &device, bool isServing) {
  NSA_ASSIGN_OR_RETURN(size_t free, device.freeBytes());
  return std::min(static_cast<double>(free) * (isServing ? kFreeShareWhileServing : kFreeShare), kMostTrialBytes);
}

Result<std::unique_ptr<Trial>> makeTrialThatFits(double &bytes, const MakeTrial &make) {
  for (;; bytes /= 2) {
    Result<std::unique_ptr<Trial>> trial = make(bytes);
    if (trial || trial.status().code() != ErrorCode::kOutOfMemory || bytes < kLeastTrialBytes)
      return trial;
  }
}

} // namespace nsa
