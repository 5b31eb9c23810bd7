#include "tools/support/attention_job.h"

#include "tests/reference/elements.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <random>
#include <span>

namespace nsa::tools {
namespace {

constexpr std::array<nsa_name, 7> kNames = {NSA_Q, NSA_K, NSA_V, NSA_OUT, NSA_LSE, NSA_CU_SEQLENS_Q, NSA_CU_SEQLENS_K};
constexpr size_t kOut = 3, kLse = 4;

// So many elements are drawn and then repeated: drawing a gigabyte takes longer than everything that is done with it. A
// prime, so that no row begins like another one.
constexpr int64_t kDrawnElements = 4'194'301;

HostTensor drawTensor(std::mt19937_64 &random, DType dtype, std::vector<int64_t> shape) {
  HostTensor tensor = HostTensor::make(dtype, std::move(shape));
  std::normal_distribution<float> normal;
  const int64_t count = tensor.elements(), drawn = std::min(count, kDrawnElements);
  for (int64_t i = 0; i < drawn; ++i)
    reference::storeElement(dtype, tensor.bytes.data(), i, normal(random));
  const int64_t bytes = dtypeBytes(dtype);
  for (int64_t done = drawn; done < count; done += drawn)
    std::memcpy(tensor.bytes.data() + done * bytes, tensor.bytes.data(),
                static_cast<size_t>(std::min(drawn, count - done) * bytes));
  return tensor;
}

nsa_tensor contiguousTensor(void *data, DType dtype, const std::vector<int64_t> &shape) {
  nsa_tensor tensor = NSA_INIT(nsa_tensor);
  tensor.data = data;
  tensor.dtype = static_cast<nsa_dtype>(dtype);
  tensor.rank = static_cast<int32_t>(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    tensor.shape[i] = shape[i];
    tensor.strides[i] = stride;
    stride *= std::max<int64_t>(1, shape[i]);
  }
  return tensor;
}

std::vector<int64_t> outShape(const AttentionInputs &inputs) {
  std::vector<int64_t> shape = inputs.q.shape;
  shape.back() = inputs.spec.vDim;
  return shape;
}

std::vector<int64_t> lseShape(const AttentionInputs &inputs) {
  return {inputs.q.shape.begin(), inputs.q.shape.end() - 1};
}

std::span<const int32_t> integers(const HostTensor &tensor) {
  return {reinterpret_cast<const int32_t *>(tensor.bytes.data()), static_cast<size_t>(tensor.elements())};
}

} // namespace

reference::TensorView tensorView(const HostTensor &tensor, bool hasColumns) {
  const std::vector<int64_t> &shape = tensor.shape;
  const size_t heads = hasColumns ? shape.size() - 2 : shape.size() - 1; // the dimension of heads
  reference::TensorView result{.data = tensor.bytes.data(), .dtype = tensor.dtype};
  result.headStride = hasColumns ? shape.back() : 1;
  result.timeStride = shape[heads] * result.headStride;
  result.batchStride = heads == 2 ? shape[1] * result.timeStride : 0;
  return result;
}

AttentionInputs drawAttentionInputs(const Spec &spec, const Maxima &maxima, uint64_t seed) {
  assert(spec.layout == Layout::kDense && "packed inputs come with their own lengths");
  std::mt19937_64 random(seed);
  AttentionInputs inputs{.spec = spec, .maxima = maxima, .q = {}, .k = {}, .v = {}, .cuSeqlensQ = {}, .cuSeqlensK = {}};
  inputs.q = drawTensor(random, spec.dtype, {maxima.batch, maxima.seqlenQ, spec.queryHeads, spec.qkDim});
  inputs.k = drawTensor(random, spec.dtype, {maxima.batch, maxima.seqlenK, spec.kvHeads, spec.qkDim});
  inputs.v = drawTensor(random, spec.dtype, {maxima.batch, maxima.seqlenK, spec.kvHeads, spec.vDim});
  return inputs;
}

reference::Attention referenceProblem(const AttentionInputs &inputs) {
  reference::Attention problem;
  problem.spec = inputs.spec;
  problem.q = tensorView(inputs.q, true);
  problem.k = tensorView(inputs.k, true);
  problem.v = tensorView(inputs.v, true);
  problem.sequences =
      inputs.spec.layout == Layout::kPacked
          ? reference::packedSequences(integers(*inputs.cuSeqlensQ), integers(*inputs.cuSeqlensK), inputs.spec)
          : reference::denseSequences(inputs.q.shape[0], inputs.q.shape[1], inputs.k.shape[1]);
  return problem;
}

reference::ErrorReport compareWithReference(const AttentionInputs &inputs, const AttentionOutputs &outputs) {
  const reference::Attention problem = referenceProblem(inputs);
  return reference::compare(problem, reference::attend(problem), tensorView(outputs.out, true),
                            tensorView(outputs.lse, false));
}

int64_t attendedPairs(const AttentionInputs &inputs) {
  int64_t pairs = 0;
  for (const reference::Sequence &sequence : referenceProblem(inputs).sequences) {
    for (int64_t query = 0; query < sequence.queries; ++query) {
      const int64_t visible = sequence.keys - sequence.queries + query + 1;
      pairs += inputs.spec.op == Operator::kWindow ? std::min<int64_t>(visible, inputs.spec.window) : visible;
    }
  }
  return pairs;
}

double attentionFlops(const AttentionInputs &inputs) {
  return 2.0 * static_cast<double>(attendedPairs(inputs)) * inputs.spec.queryHeads *
         (inputs.spec.qkDim + inputs.spec.vDim);
}

Result<DeviceAttention> DeviceAttention::upload(Accelerator &accelerator, const AttentionInputs &inputs) {
  DeviceAttention job;
  job.accelerator = &accelerator;
  job.dtype = inputs.spec.dtype;
  job.count = inputs.spec.layout == Layout::kPacked ? 7 : 5;
  const HostTensor *sources[kTensors] = {&inputs.q,
                                         &inputs.k,
                                         &inputs.v,
                                         nullptr,
                                         nullptr,
                                         inputs.cuSeqlensQ ? &*inputs.cuSeqlensQ : nullptr,
                                         inputs.cuSeqlensK ? &*inputs.cuSeqlensK : nullptr};
  for (size_t i = 0; i < job.count; ++i) {
    const bool output = i == kOut || i == kLse;
    const std::vector<int64_t> shape = i == kOut ? outShape(inputs) : i == kLse ? lseShape(inputs) : sources[i]->shape;
    const DType dtype = i == kLse ? DType::kF32 : i == kOut ? inputs.spec.dtype : sources[i]->dtype;
    int64_t elements = 1;
    for (int64_t extent : shape)
      elements *= extent;
    Result<Buffer> buffer = accelerator.allocate(elements * dtypeBytes(dtype));
    if (!buffer)
      return buffer.status();
    job.buffers[i] = std::move(*buffer);
    if (!output)
      NSA_RETURN_IF_ERROR(
          accelerator.upload(job.buffers[i].data(), sources[i]->bytes.data(), sources[i]->bytes.size()));
    job.tensors[i] = contiguousTensor(job.buffers[i].data(), dtype, shape);
  }
  NSA_RETURN_IF_ERROR(job.poisonOutputs());
  return job;
}

Status DeviceAttention::poisonOutputs() {
  // 0xff in every byte is a NaN in all of our floating point types.
  for (const size_t i : {kOut, kLse})
    NSA_RETURN_IF_ERROR(accelerator->fill(buffers[i].data(), 0xff, buffers[i].size()));
  return Status::ok();
}

Status DeviceAttention::allocateWorkspace(const nsa_plan *plan) {
  Result<size_t> bytes = workspaceSize(plan);
  if (!bytes)
    return bytes.status();
  if (*bytes <= workspace.size())
    return Status::ok();
  Result<Buffer> buffer = accelerator->allocate(*bytes);
  if (!buffer)
    return buffer.status();
  workspace = std::move(*buffer);
  return Status::ok();
}

Status DeviceAttention::enqueue(const nsa_plan *plan) const {
  std::array<nsa_binding, kTensors> bindings;
  for (size_t i = 0; i < count; ++i)
    bindings[i] = {kNames[i], &tensors[i]};
  nsa_error error{};
  return toStatus(
      nsa_run(plan, bindings.data(), count, workspace.data(), workspace.size(), accelerator->stream(), &error), error);
}

Result<AttentionOutputs> DeviceAttention::download() const {
  AttentionOutputs outputs;
  for (size_t i : {kOut, kLse}) {
    const nsa_tensor &tensor = tensors[i];
    HostTensor &target = i == kOut ? outputs.out : outputs.lse;
    target = HostTensor::make(i == kOut ? dtype : DType::kF32, {tensor.shape, tensor.shape + tensor.rank});
    NSA_RETURN_IF_ERROR(accelerator->download(target.bytes.data(), buffers[i].data(), target.bytes.size()));
  }
  return outputs;
}

} // namespace nsa::tools
