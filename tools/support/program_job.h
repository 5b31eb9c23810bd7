// Runs one call of a program of one's own: takes the tensors that it reads from host memory, copies them to the device,
// binds them by their names through the C ABI, and returns what the program stores.
// Ownership: a DeviceProgram must not outlive its accelerator.
// Thread-safety: one thread at a time may use a DeviceProgram.
#pragma once

#include "nsa/program.h"
#include "runtime/program/program_interface.h"
#include "tools/support/accelerator.h"
#include "tools/support/engine.h"
#include "tools/support/host_tensor.h"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace nsa::tools {

using ProgramHandle = std::unique_ptr<nsa_program, Destroyer<nsa_program_destroy>>;
nlohmann::json describeProgram(const nsa_program *program);

// The arguments of the functions of the C ABI that read a program: its text, or the file with the text, and values.
struct ProgramRequest {
  std::string path, text; // one of them is empty
  ProgramValues values;

  Result<ProgramHandle> create(nsa_engine *engine, void *stream = nullptr) const;
  Result<nlohmann::json> explain(nsa_engine *engine) const;
  // `seconds` 0: the engine's budget.
  Result<nlohmann::json> tune(nsa_engine *engine, double seconds = 0) const;

private:
  // Calls `use(source, values, count)`.
  template <typename Use> auto pass(const Use &use) const;
};

// Contiguous tensors by the names that a program declares.
using ProgramTensors = std::map<std::string, HostTensor, std::less<>>;

// The tensors that one call reads, and its scalars.
struct ProgramInputs {
  std::shared_ptr<const ProgramInterface> interface;
  KnownScalars scalars;
  ProgramTensors tensors;

  // The values that are compiled in and the sizes: "columns=77 dtype=fp32 rows=5".
  std::string valuesText() const;
  // The program's name, its values and the shapes of its tensors: "softmax columns=77 dtype=fp32 rows=5, x [5, 77]".
  std::string toString() const;
  // Sets the scalars that are not known to 1, as the tuner does.
  void setOpenScalars();
  // Checks the call that stores to `outputs` as its run does, but without a device and before a kernel is made.
  Status check(const std::set<std::string> &outputs) const;
};
// Draws all tensors that a program reads, the optional ones too, as the tuner does: normally distributed numbers with
// variance 1, and in tensors of i32 zeros, which are indices into every tensor. The sizes are the given values.
Result<ProgramInputs> drawProgramInputs(std::shared_ptr<const ProgramInterface> interface, uint64_t seed);
// The tensors that a call of the program stores to; the optional ones only if they are wanted or are read, too.
std::set<std::string> outputsOf(const ProgramInputs &inputs, bool withOptional);

// The tensors of one call on a device, and its workspace.
class DeviceProgram {
public:
  // Copies the inputs to the device and allocates the outputs. Outputs that are not read are filled with poison values,
  // so floating point elements that no kernel writes are NaN.
  static Result<DeviceProgram> upload(Accelerator &accelerator, const ProgramInputs &inputs,
                                      const std::set<std::string> &outputs);
  // Allocates the workspace that the program needs.
  Status allocateWorkspace(const nsa_program *program);
  // Enqueues a run on the accelerator's stream.
  Status enqueue(const nsa_program *program) const;
  // Runs the call in the interpreter, whose findings are the error (nsa_program_check).
  Status check(const nsa_program *program) const;
  // Fails when a kernel has written around a tensor or the workspace.
  Status checkGuards() const;
  // Downloads what the program has stored. Fails as checkGuards does.
  Result<ProgramTensors> download() const;

private:
  struct Entry {
    Buffer buffer;
    nsa_tensor tensor{};
    bool isOutput = false;
  };
  // Calls `use(tensors, count, scalars, count)` with the arguments of the call.
  template <typename Use> Status pass(const Use &use) const;
  Status add(const std::string &name, DType dtype, const std::vector<int64_t> &shape, const HostTensor *source,
             bool isOutput);

  Accelerator *accelerator = nullptr;
  std::map<std::string, Entry> entries;
  std::vector<std::pair<std::string, double>> scalars;
  Buffer workspace;
};

} // namespace nsa::tools
