#include "runtime/engine/tune/trial_memory.h"

#include <algorithm>

namespace nsa {

namespace {

// Tensors are not all of a trial, and the next one is made before it goes.
constexpr double kFreeShare = 1.0 / 4, kFreeShareWhileServing = 1.0 / 16;
// No trial is larger, and below the second none becomes smaller.
constexpr double kMostTrialBytes = 10e9, kLeastTrialBytes = 1e6;

} // namespace

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
