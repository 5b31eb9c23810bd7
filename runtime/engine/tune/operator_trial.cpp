#include "runtime/engine/tune/operator_trial.h"

#include "runtime/engine/tune/decode_trial.h"
#include "runtime/engine/tune/kernel_trial.h"

namespace nsa {

KernelTask tunableTask(const Spec &spec, const Maxima &maxima) {
  KernelTask task = operatorTask(spec, maxima);
  task.makeTrial = [spec, maxima](Device &device, uint64_t seed, double mostBytes, const KernelTask::Serve &serve) {
    return isTunedInDecode(spec) ? DecodeTrial::make(device, spec, maxima, seed, mostBytes, serve)
                                 : KernelTrial::make(device, spec, maxima, seed, mostBytes);
  };
  return task;
}

} // namespace nsa
