// Tensors for tuning one kernel. The tuner makes two different calls of each candidate, the timed call and the checked
// call, with the same device buffers. The timed call is as large as the maxima and a limit on the work of one run
// allow. The checked call is small and has sequences of different random lengths. The tuner compares the results of a
// candidate's checked call with the results of the kernel that defines the operator.
// Ownership: a TuningInputs owns its device memory.
// Thread-safety: one thread at a time may use a TuningInputs.
#pragma once

#include "runtime/base/kernel_arguments.h"
#include "runtime/device/device.h"
#include "runtime/engine/report/timed_shape.h"
#include "runtime/engine/tune/tuning_result.h"

#include <cstdint>
#include <random>
#include <vector>

namespace nsa {

// Returns the shape of the call that a tuning for these maxima times. The timed call is as large as the maxima allow,
// up to a limit on the work of one run. The device may have too little memory for tensors of the shape that timedShape
// returns.
TimedShape timedShape(bool isGpu, const Spec &spec, const Maxima &maxima);

class TuningInputs {
public:
  // All tensors together have about `mostBytes` bytes or less.
  static Result<TuningInputs> make(Device &device, const Spec &spec, const Maxima &maxima, uint64_t seed,
                                   double mostBytes);

  const KernelCall &timed() const { return timedCall; }
  const KernelCall &checked() const { return checkedCall; }
  // Fills the checked call's outputs with NaN, so that an element that a kernel does not write is seen.
  Status poisonOutputs();
  // Copies the outputs of the checked call to the host.
  Result<TuningResult> readChecked();
  const TimedShape &timedShape() const { return shape; }

private:
  TuningInputs(Device &device, const Spec &spec, const Maxima &maxima, uint64_t seed)
      : device(&device), spec(spec), maxima(maxima), draw(seed) {}

  struct Lengths {
    std::vector<int64_t> q, k; // one for each sequence
  };
  Status fillOperands();
  Status fill(const Operand &operand);
  Status fillLists(const DeviceBuffer &buffer, const Lengths &lengths);
  KernelCall begin(const Lengths &lengths) const;
  Status addTable(KernelCall &call, const Lengths &lengths);
  int64_t rowsOf(Lead lead, const Lengths &lengths) const;
  ViewSlots viewOf(const Operand &operand, void *data, const Lengths &lengths) const;

  Device *device;
  Spec spec;
  Maxima maxima;
  std::mt19937_64 draw;
  Lengths timedLengths, checkedLengths;
  std::vector<DeviceBuffer> buffers;
  std::vector<ComparedOutput> outputs;
  KernelCall timedCall, checkedCall;
  TimedShape shape;
};

} // namespace nsa
