// Decides how much of the device's memory a trial may take, so that the host can still allocate device memory.
// Thread-safety: all functions may be called by many threads at once. makeTrialThatFits calls `make` on the caller's
// thread.
#pragma once

#include "runtime/engine/tune/trial.h"

#include <functional>
#include <memory>

namespace nsa {

// Returns how many of the free bytes the tensors of a trial may take. If `isServing` is true, trialBytes returns fewer
// bytes, because the host uses the device at the same time.
Result<double> trialBytes(Device &device, bool isServing);

// Calls `make` with `bytes`. While memory is short, makeTrialThatFits tries again with half as many bytes. When
// makeTrialThatFits returns, `bytes` is the number of bytes of the last call of `make`.
using MakeTrial = std::function<Result<std::unique_ptr<Trial>>(double bytes)>;
Result<std::unique_ptr<Trial>> makeTrialThatFits(double &bytes, const MakeTrial &make);

} // namespace nsa
