#include "tools/nsa/attention_file.h"

#include <algorithm>
#include <limits>

namespace nsa::tools {
namespace {

Status disagrees(const char *key, const std::string &given, const std::string &tensors) {
  return Status::invalid(key, given, "must agree with the tensors, which say " + tensors);
}

// A value of the configuration that the tensors determine.
Status agree(const char *key, const std::optional<int32_t> &given, int64_t actual) {
  if (given && *given != actual)
    return disagrees(key, std::to_string(*given), std::to_string(actual));
  return Status::ok();
}

struct NamedTensor {
  std::string name;
  HostTensor tensor;
};

Result<NamedTensor> readFirst(const SafetensorsFile &file, const std::string &preferred, const std::string &otherwise) {
  const std::string &name = file.contains(preferred) ? preferred : otherwise;
  Result<HostTensor> tensor = file.read(name);
  if (!tensor)
    return tensor.status();
  return NamedTensor{name, std::move(*tensor)};
}

Result<std::optional<HostTensor>> readLengths(const SafetensorsFile &file, const std::string &name) {
  if (!file.contains(name))
    return std::optional<HostTensor>();
  Result<HostTensor> tensor = file.read(name);
  if (!tensor)
    return tensor.status();
  if (tensor->dtype != DType::kI32)
    return Status::invalid(name, std::string(dtypeName(tensor->dtype)), "must be int32");
  if (tensor->shape.size() != 1 || tensor->shape[0] < 2)
    return Status::invalid(name, shapeText(tensor->shape), "must be of shape [batch + 1], batch >= 1");
  return std::optional<HostTensor>(std::move(*tensor));
}

// The longest sequence, for the plan's maxima. Malformed lengths are the runtime's to report: they only must not
// make the maxima nonsense here.
int64_t longest(const HostTensor &cuSeqlens, int64_t total) {
  const auto *values = reinterpret_cast<const int32_t *>(cuSeqlens.bytes.data());
  int64_t length = 0;
  for (int64_t i = 0; i + 1 < cuSeqlens.shape[0]; ++i)
    length = std::max(length, static_cast<int64_t>(values[i + 1]) - values[i]);
  return std::min(length, total);
}

Status checkShapes(const NamedTensor &q, const NamedTensor &k, const NamedTensor &v, bool packed) {
  for (const NamedTensor *input : {&q, &k, &v}) {
    if (input->tensor.dtype == DType::kI32)
      return Status::invalid(input->name, "I32", "must be BF16, F16 or F32");
    if (input->tensor.dtype != q.tensor.dtype)
      return Status::invalid(input->name, std::string(dtypeName(input->tensor.dtype)),
                             "must have the dtype of q, " + std::string(dtypeName(q.tensor.dtype)));
    const size_t rank = input->tensor.shape.size();
    if (packed && rank != 3)
      return Status::invalid(input->name, shapeText(input->tensor.shape),
                             "must be [total, heads, dim] beside cu_seqlens");
    if (rank != 3 && rank != 4)
      return Status::invalid(input->name, shapeText(input->tensor.shape),
                             "must be [time, heads, dim] or [batch, time, heads, dim]");
    if (rank != q.tensor.shape.size())
      return Status::invalid(input->name, shapeText(input->tensor.shape),
                             "must have the rank of q, " + std::to_string(q.tensor.shape.size()));
    for (size_t i = rank - 2; i < rank; ++i)
      if (input->tensor.shape[i] < 1)
        return Status::invalid(input->name, shapeText(input->tensor.shape),
                               "must have at least one head and one column");
    for (int64_t extent : input->tensor.shape)
      if (extent > std::numeric_limits<int32_t>::max())
        return Status::invalid(input->name, shapeText(input->tensor.shape), "must have extents below 2^31");
    if (rank == 4 && input->tensor.shape[0] != q.tensor.shape[0])
      return Status::invalid(input->name, shapeText(input->tensor.shape),
                             "must have the batch of q, " + std::to_string(q.tensor.shape[0]));
  }
  const std::vector<int64_t> &kShape = k.tensor.shape, &vShape = v.tensor.shape;
  const size_t rank = kShape.size();
  if (q.tensor.shape[rank - 1] != kShape[rank - 1])
    return Status::invalid(k.name, shapeText(kShape),
                           "must have the head size of q, " + std::to_string(q.tensor.shape[rank - 1]));
  if (kShape[rank - 2] != vShape[rank - 2] || kShape[rank - 3] != vShape[rank - 3])
    return Status::invalid(v.name, shapeText(vShape),
                           "must have the time and heads of " + k.name + ", " + shapeText(kShape));
  return Status::ok();
}

} // namespace

Result<AttentionFile> readAttentionFile(Operator op, const ConfigFile &config, const SafetensorsFile &file) {
  Result<NamedTensor> q = readFirst(file, "q", "q");
  if (!q)
    return q.status();
  Result<NamedTensor> k = readFirst(file, "k_win", "k");
  if (!k)
    return k.status();
  Result<NamedTensor> v = readFirst(file, "v_win", "v");
  if (!v)
    return v.status();
  Result<std::optional<HostTensor>> cuSeqlensQ = readLengths(file, "cu_seqlens_q");
  if (!cuSeqlensQ)
    return cuSeqlensQ.status();
  Result<std::optional<HostTensor>> cuSeqlensK = readLengths(file, "cu_seqlens_k");
  if (!cuSeqlensK)
    return cuSeqlensK.status();
  const bool packed = *cuSeqlensQ || *cuSeqlensK;
  NSA_RETURN_IF_ERROR(checkShapes(*q, *k, *v, packed));

  AttentionFile result;
  AttentionInputs &inputs = result.inputs;
  inputs = {.spec = {},
            .maxima = {},
            .q = std::move(q->tensor),
            .k = std::move(k->tensor),
            .v = std::move(v->tensor),
            .cuSeqlensQ = {},
            .cuSeqlensK = {}};
  Spec &spec = inputs.spec;
  const size_t rank = inputs.q.shape.size();
  spec.op = op;
  spec.dtype = inputs.q.dtype;
  spec.layout = packed ? Layout::kPacked : Layout::kDense;
  spec.queryHeads = static_cast<int32_t>(inputs.q.shape[rank - 2]);
  spec.kvHeads = static_cast<int32_t>(inputs.k.shape[rank - 2]);
  spec.qkDim = static_cast<int32_t>(inputs.q.shape[rank - 1]);
  spec.vDim = static_cast<int32_t>(inputs.v.shape[rank - 1]);
  spec.window = config.window.value_or(spec.window);
  spec.scale = config.scale.value_or(spec.scale);
  NSA_RETURN_IF_ERROR(agree("query_heads", config.queryHeads, spec.queryHeads));
  NSA_RETURN_IF_ERROR(agree("kv_heads", config.kvHeads, spec.kvHeads));
  NSA_RETURN_IF_ERROR(agree("qk_dim", config.qkDim, spec.qkDim));
  NSA_RETURN_IF_ERROR(agree("v_dim", config.vDim, spec.vDim));
  if (config.dtype && *config.dtype != spec.dtype)
    return disagrees("dtype", std::string(dtypeName(*config.dtype)), std::string(dtypeName(spec.dtype)));
  if (config.layout && *config.layout != spec.layout)
    return disagrees("layout", std::string(layoutName(*config.layout)), std::string(layoutName(spec.layout)));
  NSA_RETURN_IF_ERROR(spec.validate());

  if (packed) {
    const HostTensor &some = *cuSeqlensQ ? **cuSeqlensQ : **cuSeqlensK;
    inputs.cuSeqlensQ = *cuSeqlensQ ? **cuSeqlensQ : some;
    inputs.cuSeqlensK = *cuSeqlensK ? **cuSeqlensK : some;
    if (inputs.cuSeqlensQ->shape != inputs.cuSeqlensK->shape)
      return Status::invalid("cu_seqlens_k", shapeText(inputs.cuSeqlensK->shape),
                             "must have the shape of cu_seqlens_q, " + shapeText(inputs.cuSeqlensQ->shape));
    inputs.maxima.batch = some.shape[0] - 1;
    inputs.maxima.tokensQ = inputs.q.shape[0];
    inputs.maxima.seqlenQ = longest(*inputs.cuSeqlensQ, inputs.q.shape[0]);
    inputs.maxima.seqlenK = longest(*inputs.cuSeqlensK, inputs.k.shape[0]);
  } else {
    result.withoutBatch = rank == 3;
    if (result.withoutBatch)
      for (HostTensor *tensor : {&inputs.q, &inputs.k, &inputs.v})
        tensor->shape.insert(tensor->shape.begin(), 1);
    inputs.maxima.batch = inputs.q.shape[0];
    inputs.maxima.seqlenQ = inputs.q.shape[1];
    inputs.maxima.seqlenK = inputs.k.shape[1];
    inputs.maxima.tokensQ = inputs.maxima.batch * inputs.maxima.seqlenQ;
  }
  NSA_RETURN_IF_ERROR(inputs.maxima.validate(spec));
  return result;
}

} // namespace nsa::tools
