// Compares the result of a program's kernel with the result of its reference, on the tensors of one call. A comparison
// is for debugging: it allocates memory, waits for its kernels and copies their results to the host. Ownership: a
// ProgramComparison borrows all arguments of its constructor. Thread-safety: a ProgramComparison belongs to one call.
#pragma once

#include "runtime/device/loaded_kernel.h"
#include "runtime/engine/graph/comparison.h"
#include "runtime/engine/program/host_copy.h"
#include "runtime/engine/program/program_call.h"

#include <span>
#include <string_view>
#include <vector>

namespace nsa {

class ProgramComparison {
public:
  // The kernel of the program or of its reference, which may declare the tensors in another order. `call` is what
  // prepareProgramCall makes of the tensors by `interface`.
  struct Side {
    const ProgramInterface &interface;
    const KernelCall &call;
    const LoadedKernel &kernel;
  };
  // Kernels report to `statusWord`.
  ProgramComparison(Device &device, std::span<const NamedTensor> tensors, const void *statusWord, void *stream)
      : device(device), tensors(tensors), statusWord(statusWord), stream(stream) {}

  // Launches both kernels, each on its own copies of the tensors that the program stores to. The tensors of the call
  // stay as they are. Returns an entry for each of these tensors, whose part is the tensor's name.
  Result<std::vector<ComparedPart>> run(const Side &own, const Side &reference) const;

private:
  // A tensor that the program stores to.
  struct Output {
    std::string_view name;
    HostCopy copy;
  };
  using Outputs = std::vector<Output>;
  Result<Outputs> readOutputs(const ProgramInterface &interface) const;
  // What the outputs are after a launch.
  Result<Outputs> resultsOf(const Side &side, Outputs outputs) const;
  Status wait() const;

  Device &device;
  std::span<const NamedTensor> tensors;
  const void *statusWord;
  void *stream;
};

} // namespace nsa
