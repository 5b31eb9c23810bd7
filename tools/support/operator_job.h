// Runs one call of any operator: takes the input tensors from host memory, copies them to the device, makes the
// bindings of the C ABI, and returns the outputs in host memory. The operator's signature (runtime/base/signature.h)
// says which tensors a call has, which shapes they have and how they are bound.
// Ownership: a DeviceOperator must not outlive its accelerator.
// Thread-safety: one thread at a time may use a DeviceOperator.
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
#include <vector>

namespace nsa::tools {

// Contiguous tensors with the shapes of the C ABI.
using NamedTensors = std::map<TensorName, HostTensor>;

// The numbers that, together with the spec, determine the shapes of a call's tensors. In the dense layout, timeQ, timeK
// and blocks are counted for one sequence. In the packed layout, timeQ, timeK and blocks are counted for all sequences
// together.
struct CallExtents {
  int64_t batch = 1; // sequences
  int64_t timeQ = 0; // queries
  int64_t timeK = 0;
  int64_t blocks = 0; // compressed blocks
  int64_t room = 0;   // of a cache: tokens of a sequence; with pages, in whole pages
  int64_t pages = 0;  // of each pool, where the spec has a page_size
};
// Draws a tensor. A large tensor repeats a block of drawn values.
HostTensor drawTensor(DType dtype, std::vector<int64_t> shape, const std::function<float()> &draw);
nsa_tensor contiguousTensor(void *data, DType dtype, const std::vector<int64_t> &shape);
std::vector<int64_t> shapeOf(const Spec &spec, TensorName name, const CallExtents &extents);
DType dtypeOf(const Spec &spec, TensorName name);
// Returns true if tensors with this lead hold rows of a cache: its keys and values, their compressed rows, or the ring.
bool isOfCache(Lead lead);
// Returns whether a call changes this tensor in place, as decode does with the tensors of a cache and their lengths.
bool isUpdated(TensorName name);

struct OperatorInputs {
  Spec spec;
  Maxima maxima;
  CallExtents extents;
  NamedTensors tensors;

  const HostTensor &operator[](TensorName name) const { return tensors.at(name); }
  // Returns the tensor for an operand: the tensor `name` if it exists, or else the tensor `otherwise`. Returns nullptr
  // if neither exists.
  const HostTensor *find(TensorName name, TensorName otherwise) const;
};

// The number of queries and the number of keys of each sequence. In the dense layout, all sequences must have the same
// number of queries and the same number of keys.
struct SequenceLengths {
  std::vector<int64_t> q, k;

  // Returns `maxima.batch` sequences, each with `maxima.seqlenQ` queries and `maxima.seqlenK` keys.
  static SequenceLengths largest(const Maxima &maxima);
};
// The operands that an operator writes and does not read: allOutputs includes the optional outputs, requiredOutputs
// does not.
std::set<TensorName> allOutputs(Operator op);
std::set<TensorName> requiredOutputs(Operator op);
// Returns the name under which a call that reads the tensors `inputs` binds an output. The gradient of an operand is
// named after the tensor that is read: d_k_win if `inputs` has k_win, and d_k if it has only k.
TensorName outputName(const Operand &operand, const NamedTensors &inputs);
// The outputs of a call that reads the tensors `inputs`: the required ones, and in `wanted` the optional ones and the
// gradients of tensors that no branch reads.
std::set<TensorName> outputsOf(const Spec &spec, const NamedTensors &inputs, const std::set<TensorName> &wanted);

// Returns the maxima and the extents of a call for sequences of the given lengths. The result contains the tensors
// cu_seqlens_q and cu_seqlens_k if the layout is packed and the operator reads them. The result contains no other
// tensor.
OperatorInputs layOut(const Spec &spec, const SequenceLengths &lengths);
// Draws every input of an operator at random from `seed`. The operator must not be decode, whose inputs cacheInputs
// (kv_cache.h) makes. Queries, keys and values are drawn from a normal distribution with variance 1, and a large tensor
// repeats a drawn block. Weights are scaled so that a product with them has the same variance as its input. Gates are
// drawn between 0 and 1 if the spec reads them as values, and otherwise as logits. Block lists are ascending and
// causal, and contain the query's own block. What the gradients of attention take from the forward pass is computed by
// the reference, or left out for long sequences, where the caller adds it (addSaved in forward_pass.h).
enum class Saved : uint8_t { kByReference, kByCaller };
OperatorInputs drawInputs(const Spec &spec, const SequenceLengths &lengths, uint64_t seed,
                          Saved saved = Saved::kByReference);

// The bindings and the workspace of a call on a device, and the functions of the C ABI that run the call.
class DeviceCall {
public:
  // Allocates the workspace that the plan needs, unless the workspace of an earlier plan is large enough, and fills it
  // with poison values.
  Status allocateWorkspace(const nsa_plan *plan);
  // Enqueues a run of the plan on the accelerator's stream.
  Status enqueue(const nsa_plan *plan) const;
  // Does what `enqueue` does, but waits and returns how long each part took.
  Result<std::vector<nsa_part_time>> runTimed(const nsa_plan *plan) const;
  // Fills the outputs with poison values again, before another plan runs on the same tensors.
  Status poisonOutputs();
  // Fails when a kernel has written around a tensor or the workspace.
  Status checkGuards() const;
  // Copies a tensor to the host. Fails when bytes between its elements were written.
  Result<HostTensor> download(TensorName name) const;
  // Returns the device's copy of a tensor, for tests that overwrite it with wrong values and for captured calls.
  nsa_tensor &tensor(TensorName name) { return entries.at(name).tensor; }
  const nsa_tensor &tensor(TensorName name) const { return entries.at(name).tensor; }

protected:
  struct Entry {
    Buffer buffer;
    nsa_tensor tensor{};
    std::optional<SpacedLayout> layout; // absent: contiguous
  };
  // Allocates and binds a tensor, which gets the elements of `source`, or poison values if `source` is null.
  Status add(TensorName name, DType dtype, const std::vector<int64_t> &shape, const HostTensor *source,
             std::optional<SpacedLayout> layout = {});

  Accelerator *accelerator = nullptr;
  std::vector<nsa_binding> bindings;
  std::map<TensorName, Entry> entries;
  std::set<TensorName> outputNames;
  Buffer workspace;
};

// What an output holds before a call, in the type with which it is bound, and whether the call adds to that.
struct HeldOutput {
  HostTensor content;
  bool accumulate = false;
};
using HeldOutputs = std::map<TensorName, HeldOutput>;

class DeviceOperator : public DeviceCall {
public:
  // Copies the inputs to the device, and allocates all required outputs and the wanted optional outputs. An output
  // holds what `held` says, or else poison values, so floating point elements that no kernel writes are NaN. `spacing`
  // says how the elements of the tensors lie in memory. Every run updates a cache.
  static Result<DeviceOperator> upload(Accelerator &accelerator, const OperatorInputs &inputs,
                                       const std::set<TensorName> &wanted, const Spacing &spacing = {},
                                       const HeldOutputs &held = {});
  // Downloads the outputs and the updated tensors. Fails when bytes between an output's elements, or around a tensor or
  // the workspace, were written.
  Result<NamedTensors> download() const;
  // Makes the tensor `name` use the device memory `data` with the given strides. The caller owns `data`, and `download`
  // does not read it.
  void rebind(TensorName name, void *data, const std::vector<int64_t> &strides);
};

struct RunResult {
  NamedTensors outputs;
  double milliseconds = 0; // of the work on the device
};
// Copies the inputs to the device, runs the operator once, and copies the outputs back. The run fails when a kernel
// reports a fault in the plan's status word.
Result<RunResult> runOnce(Accelerator &accelerator, nsa_plan *plan, const OperatorInputs &inputs,
                          const std::set<TensorName> &wanted, const Spacing &spacing = {},
                          const HeldOutputs &held = {});

} // namespace nsa::tools
