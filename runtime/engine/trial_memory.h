// How much of the device's memory a trial may take: what its host needs next is none of the tuner's.
// Thread-safety: pure but for the device.
#pragma once

#include "runtime/engine/trial.h"

#include <functional>
#include <memory>

namespace nsa {

// Bytes of the tensors of a trial, of those that are free. `isServing`: the host uses the device meanwhile.
Result<double> trialBytes(Device &device, bool isServing);

// The trial that `make` makes with `bytes`, or while memory is short with half of them, and so on; `bytes` is then what
// it was made with.
using MakeTrial = std::function<Result<std::unique_ptr<Trial>>(double bytes)>;
Result<std::unique_ptr<Trial>> makeTrialThatFits(double &bytes, const MakeTrial &make);

} // namespace nsa
