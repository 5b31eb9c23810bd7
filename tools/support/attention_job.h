// One attention call from host tensors to host results: the tensors of a dense or window operator, their
// place on a device, the bindings of the C ABI, and the same problem in the words of the fp64 reference.
// Ownership: a DeviceAttention must not outlive its accelerator. Thread-safety: one thread at a time.
#pragma once

#include "runtime/base/problem.h"
#include "tests/reference/attention.h"
#include "tests/reference/error_metrics.h"
#include "tools/support/accelerator.h"
#include "tools/support/engine.h"
#include "tools/support/host_tensor.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nsa::tools {

// Contiguous tensors, shaped as the C ABI wants them: rank 4 (dense) or rank 3 with cu_seqlens (packed).
struct AttentionInputs {
  Spec spec;
  Maxima maxima;
  HostTensor q, k, v;
  std::optional<HostTensor> cuSeqlensQ, cuSeqlensK; // packed: both, equal when one was given
};

struct AttentionOutputs {
  HostTensor out, lse;
};

// Unit-normal inputs from a seed (large tensors repeat a drawn block), rounded to the spec's type. Dense layout: maxima
// give batch and lengths.
AttentionInputs drawAttentionInputs(const Spec &spec, const Maxima &maxima, uint64_t seed);

// Borrows the inputs. Packed inputs must have well-formed cu_seqlens.
reference::Attention referenceProblem(const AttentionInputs &inputs);
// Any contiguous tensor [.., time, heads] with or without columns behind.
reference::TensorView tensorView(const HostTensor &tensor, bool hasColumns);
reference::ErrorReport compareWithReference(const AttentionInputs &inputs, const AttentionOutputs &outputs);

// (query, key) pairs that the operator attends, per query head, all sequences together.
int64_t attendedPairs(const AttentionInputs &inputs);
// Floating point operations of both products over exactly those pairs.
double attentionFlops(const AttentionInputs &inputs);

class DeviceAttention {
public:
  // Output and LSE are poisoned: what the kernel does not write reads as NaN.
  static Result<DeviceAttention> upload(Accelerator &accelerator, const AttentionInputs &inputs);
  // Again, before another plan runs on the same tensors.
  Status poisonOutputs();

  // Grows the workspace to what the plan needs, so that one suffices for several plans.
  Status allocateWorkspace(const nsa_plan *plan);
  // Enqueues the operator on the accelerator's stream.
  Status enqueue(const nsa_plan *plan) const;
  Result<AttentionOutputs> download() const;

private:
  static constexpr size_t kTensors = 7; // q, k, v, out, lse, cu_seqlens_q, cu_seqlens_k

  Accelerator *accelerator = nullptr;
  std::array<Buffer, kTensors> buffers;
  std::array<nsa_tensor, kTensors> tensors{};
  size_t count = 0;
  DType dtype = DType::kF32;
  Buffer workspace;
};

} // namespace nsa::tools
