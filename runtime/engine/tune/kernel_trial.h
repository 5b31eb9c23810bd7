// Runs candidate kernels for an operator that consists of a single kernel. The tuner makes two different calls of each
// candidate, the timed call and the checked call, with the same device buffers. The timed call is as large as the
// maxima and a limit on the work of one run allow. The checked call is small and has sequences of different random
// lengths. The tuner compares the results of a candidate's checked call with the results of the kernel that defines the
// operator.
// Ownership: a KernelTrial owns its device memory.
// Thread-safety: one thread at a time may use a KernelTrial.
#pragma once

#include "runtime/engine/report/timed_shape.h"
#include "runtime/engine/tune/drawn_index.h"
#include "runtime/engine/tune/trial.h"

#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace nsa {

// Returns the shape of the call that a tuning for these maxima times. The timed call is as large as the maxima allow,
// up to a limit on the work of one run. The device may have too little memory for tensors of the shape that timedShape
// returns.
TimedShape timedShape(bool isGpu, const Spec &spec, const Maxima &maxima);

class KernelTrial final : public Trial {
public:
  // All tensors together have about `mostBytes` bytes or less.
  static Result<std::unique_ptr<Trial>> make(Device &device, const Spec &spec, const Maxima &maxima, uint64_t seed,
                                             double mostBytes);

  Result<TuningResult> check(const LoadedKernel &kernel) override;
  Status launchTimed(const LoadedKernel &kernel, void *stream) override {
    return launches.launch(kernel, timedCall, stream);
  }
  std::string shapeText() const override { return shape.text(); }
  std::string cut() const override { return cutText(spec, maxima, shape); }

private:
  KernelTrial(Device &device, const Spec &spec, const Maxima &maxima, uint64_t seed, TrialLaunches launches)
      : device(device), spec(spec), maxima(maxima), draw(seed), launches(std::move(launches)) {}

  struct Lengths {
    std::vector<int64_t> q, k; // one for each sequence
  };
  Status fillOperands();
  Status fill(const Operand &operand);
  // Of the kernel of keys of attention's gradients: the parts of gradients that the timed call writes.
  Status addParts();
  std::vector<int32_t> drawLists(const Lengths &lengths);
  // Of the kernels of gradients of `sel`: what they take besides lists, and the parts of the gradients that they write.
  Status addIndex(KernelCall &call, const Lengths &lengths, std::span<const int32_t> lists);
  Status addSlots(KernelCall &call, const Lengths &lengths, const DrawnIndex &drawn);
  Result<DeviceBuffer *> addBuffer(const std::vector<int32_t> &values);
  KernelCall begin(const Lengths &lengths) const;
  Status addTable(KernelCall &call, const Lengths &lengths);
  int64_t rowsOf(Lead lead, const Lengths &lengths) const;
  ViewSlots viewOf(const Operand &operand, void *data, const Lengths &lengths) const;

  // Draws the lengths of the sequences, and allocates and fills the tensors of both calls.
  Status prepare(double mostBytes);

  Device &device;
  Spec spec;
  Maxima maxima;
  std::mt19937_64 draw;
  Lengths timedLengths, checkedLengths;
  std::vector<DeviceBuffer> buffers;
  std::vector<ComparedOutput> outputs;
  std::vector<bool> writtenRows; // of outputs; empty: all
  KernelCall timedCall, checkedCall;
  TrialLaunches launches;
  TimedShape shape;
};

} // namespace nsa
