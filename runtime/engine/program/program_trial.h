// Runs candidate kernels of a program of one's own on drawn tensors of the sizes with which the program was made. The
// compared call and the timed call are the same: which other sizes a program takes, only its writer knows.
// Ownership: a ProgramTrial owns its device memory.
// Thread-safety: one thread at a time.
#pragma once

#include "runtime/engine/tune/trial.h"
#include "runtime/program/program_interface.h"

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace nsa {

class ProgramTrial final : public Trial {
public:
  // The error names the dimension whose extent the program does not declare, or says that the tensors have more than
  // `mostBytes` bytes, or that they are none of the reference's. `reference` is null where another configuration of the
  // program is the reference.
  static Result<std::unique_ptr<Trial>> make(Device &device, std::shared_ptr<const ProgramInterface> interface,
                                             const std::shared_ptr<const ProgramInterface> &reference, uint64_t seed,
                                             double mostBytes);

  Result<TuningResult> check(const LoadedKernel &kernel) override { return check(kernel, call); }
  Result<TuningResult> checkReference(const LoadedKernel &kernel) override { return check(kernel, referenceCall); }
  Status launchTimed(const LoadedKernel &kernel, void *stream) override {
    return launches.launch(kernel, call, stream);
  }
  std::string shapeText() const override;
  std::string cut() const override { return ""; } // all of a call is timed

private:
  ProgramTrial(Device &device, std::shared_ptr<const ProgramInterface> interface, uint64_t seed, TrialLaunches launches)
      : device(device), interface(std::move(interface)), seed(seed), launches(std::move(launches)) {}

  struct Memory {
    const ProgramTensor *tensor;
    int64_t elements;
    DeviceBuffer buffer;
  };
  Status allocate(const std::shared_ptr<const ProgramInterface> &reference, double mostBytes);
  Status fill();
  Result<TuningResult> check(const LoadedKernel &kernel, const KernelCall &tried);

  Device &device;
  std::shared_ptr<const ProgramInterface> interface;
  uint64_t seed;
  std::vector<Memory> memory;
  std::vector<ComparedOutput> outputs;
  KernelCall call, referenceCall; // of the same tensors
  TrialLaunches launches;
};

} // namespace nsa
