// One call of any operator from host tensors to host results: which tensors it takes and how large they are, their
// place on a device, and the bindings of the C ABI. All of it follows from the operator's signature
// (runtime/base/signature.h). Ownership: a DeviceOperator must not outlive its accelerator. Thread-safety: one thread
// at a time.
#pragma once

#include "runtime/base/signature.h"
#include "tools/support/accelerator.h"
#include "tools/support/engine.h"
#include "tools/support/host_tensor.h"
#include "tools/support/spacing.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace nsa::tools {

// Contiguous tensors, shaped as the C ABI wants them.
using NamedTensors = std::map<TensorName, HostTensor>;

// What counts in the shapes of a call, besides the spec.
struct CallExtents {
  int64_t batch = 1; // sequences
  int64_t timeQ = 0; // of each sequence in the dense layout, of all in the packed one; so the next two
  int64_t timeK = 0;
  int64_t blocks = 0; // compressed
  int64_t room = 0;   // of a cache: tokens of a sequence, with pages whole ones
  int64_t pages = 0;  // of a cache's pools, where the spec has a page_size
};
// Large tensors repeat a block of what was drawn.
HostTensor drawTensor(DType dtype, std::vector<int64_t> shape, const std::function<float()> &draw);
nsa_tensor contiguousTensor(void *data, DType dtype, const std::vector<int64_t> &shape);
// nsa_run_timed.
Result<std::vector<nsa_part_time>> timedParts(const nsa_plan *plan, std::span<const nsa_binding> bindings,
                                              const Buffer &workspace, void *stream);
std::vector<int64_t> shapeOf(const Spec &spec, TensorName name, const CallExtents &extents);
DType dtypeOf(const Spec &spec, TensorName name);
// Whether a call changes what it was given: the tensors of a cache and their lengths.
bool isUpdated(TensorName name);

struct OperatorInputs {
  Spec spec;
  Maxima maxima;
  CallExtents extents;
  NamedTensors tensors;

  const HostTensor &operator[](TensorName name) const { return tensors.at(name); }
  // What serves for an operand: the tensor of its own name, else of the other. nullptr: nothing.
  const HostTensor *find(TensorName name, TensorName otherwise) const;
};

// Lengths of each sequence; in the dense layout all are equal.
struct SequenceLengths {
  std::vector<int64_t> q, k;

  // As many sequences as the maxima allow, all as long as they may be.
  static SequenceLengths largest(const Maxima &maxima);
};
// Everything that an operator writes and does not read, the optional outputs too, or only what a call must have.
std::set<TensorName> allOutputs(Operator op);
std::set<TensorName> requiredOutputs(Operator op);

// Maxima and extents that fit, and in the packed layout cu_seqlens among the tensors.
OperatorInputs layOut(const Spec &spec, const SequenceLengths &lengths);
// Draws every input that the operator takes (of decode: kv_cache.h): unit-normal rows from a seed (large tensors repeat
// a drawn block), weights that keep their scale, gates between 0 and 1 or logits, block lists in order, causal and with
// the own block.
OperatorInputs drawInputs(const Spec &spec, const SequenceLengths &lengths, uint64_t seed);

class DeviceOperator {
public:
  // With all required outputs, and those optional ones that are wanted. Outputs are poisoned: what no kernel writes
  // reads as NaN. All tensors lie in memory as `spacing` says. A cache is updated by every run.
  static Result<DeviceOperator> upload(Accelerator &accelerator, const OperatorInputs &inputs,
                                       const std::set<TensorName> &wanted, const Spacing &spacing = {});
  // Again, before another plan runs on the same tensors.
  Status poisonOutputs();
  // Makes the workspace as large as the plan needs, not larger, and poisons it.
  Status allocateWorkspace(const nsa_plan *plan);
  // Enqueues the operator on the accelerator's stream.
  Status enqueue(const nsa_plan *plan) const;
  // The same, and waits: how long each part took.
  Result<std::vector<nsa_part_time>> runTimed(const nsa_plan *plan) const;
  // Outputs, and what was updated. An error when bytes between an output's elements were written, or around a tensor or
  // the workspace.
  Result<NamedTensors> download() const;
  // The device's copy of a tensor, for tests that spoil it.
  const nsa_tensor &tensor(TensorName name) const { return entries.at(name).tensor; }
  // Another memory of the device in its place, with strides of its own; the caller's, also for download.
  void rebind(TensorName name, void *data, const std::vector<int64_t> &strides);

private:
  struct Entry {
    Buffer buffer;
    nsa_tensor tensor{};
    bool isOutput = false;
    std::optional<SpacedLayout> layout; // absent: contiguous
  };
  Status add(const Spec &spec, TensorName name, const std::vector<int64_t> &shape, const HostTensor *source,
             const Spacing &spacing);

  Accelerator *accelerator = nullptr;
  std::map<TensorName, Entry> entries;
  std::vector<nsa_binding> bindings;
  Buffer workspace;
};

struct RunResult {
  NamedTensors outputs;
  double milliseconds = 0; // of the work on the device
};
// One run from host to host. What kernels report in the plan's status word is an error.
Result<RunResult> runOnce(Accelerator &accelerator, nsa_plan *plan, const OperatorInputs &inputs,
                          const std::set<TensorName> &wanted, const Spacing &spacing = {});

} // namespace nsa::tools
