#include "runtime/engine/tuning_inputs.h"

#include "runtime/base/half.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

namespace nsa {

namespace {

// One timed run shall stay in the order of 10 ms, and all tensors within a fraction of the memory.
struct Budget {
  double flops;
  double bytes;
};
constexpr Budget kCpuBudget = {4e9, 256e6};
constexpr Budget kGpuBudget = {2e12, 2e9};
// The compared run is read back and looked at by the host, once per candidate: as small as still shows every kind of
// tile, which a thousand queries do.
constexpr Budget kCheckBudget = {4e9, 32e6};
constexpr int64_t kMostCheckedQueries = 1024;
constexpr int64_t kMostCheckedKeys = 2048;
// Random numbers are drawn for so many elements and then repeated: drawing a gigabyte takes longer than tuning.
constexpr int64_t kDrawnElements = int64_t{1} << 22;

// Sizes below which a tensor is not cut further: the shape would no longer be the problem's.
constexpr int64_t kLeastQueries = 64;
constexpr int64_t kLeastKeys = 256;

struct Sizes {
  int64_t batch, seqlenQ, seqlenK;
};

bool exceeds(const Budget &budget, const Spec &spec, const Sizes &sizes) {
  double keys = static_cast<double>(sizes.seqlenK);
  if (spec.op == Operator::kWindow)
    keys = std::min(keys, static_cast<double>(spec.window));
  double rowsQ = static_cast<double>(sizes.batch) * static_cast<double>(sizes.seqlenQ) * spec.queryHeads;
  double rowsK = static_cast<double>(sizes.batch) * static_cast<double>(sizes.seqlenK) * spec.kvHeads;
  double dims = static_cast<double>(spec.qkDim) + spec.vDim;
  return 2 * rowsQ * keys * dims > budget.flops || (rowsQ + rowsK) * dims * dtypeBytes(spec.dtype) > budget.bytes;
}

// Fewer sequences first, then fewer queries, then fewer keys.
Sizes fit(const Budget &budget, const Spec &spec, const Maxima &maxima) {
  Sizes sizes = {std::max<int64_t>(maxima.batch, 1), std::max<int64_t>(maxima.seqlenQ, 1),
                 std::max<int64_t>(maxima.seqlenK, 1)};
  sizes.seqlenQ = std::min({sizes.seqlenQ, sizes.seqlenK, std::max<int64_t>(maxima.tokensQ, 1)});
  sizes.batch = std::min(sizes.batch, std::max<int64_t>(maxima.tokensQ / sizes.seqlenQ, 1));
  while (exceeds(budget, spec, sizes)) {
    if (sizes.batch > 1)
      sizes.batch /= 2;
    else if (sizes.seqlenQ > kLeastQueries)
      sizes.seqlenQ /= 2;
    else if (sizes.seqlenK > kLeastKeys)
      sizes.seqlenK /= 2;
    else
      break;
  }
  sizes.seqlenQ = std::min(sizes.seqlenQ, sizes.seqlenK);
  return sizes;
}

// Nearly normal with variance 1: the sum of four uniform 16-bit draws (Irwin-Hall), one multiplication per element.
class NormalDraw {
public:
  explicit NormalDraw(uint64_t seed) : generator(seed) {}
  float operator()() {
    uint64_t bits = generator();
    auto sum = static_cast<float>((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));
    return (sum - 2.0f * 65535.0f) * (1.7320508f / 65535.0f);
  }

private:
  std::mt19937_64 generator;
};

std::array<int64_t, kMaxTensorRank> rowMajor(const Tensor &tensor) {
  std::array<int64_t, kMaxTensorRank> strides = {};
  int64_t stride = 1;
  for (auto axis = static_cast<size_t>(tensor.rank); axis-- > 0;) {
    strides[axis] = stride;
    stride *= tensor.shape[axis];
  }
  return strides;
}

} // namespace

Result<TuningInputs> TuningInputs::make(Device &device, const Spec &spec, const Maxima &maxima, uint64_t seed) {
  TuningInputs inputs(device, spec);
  Sizes sizes = fit(device.isGpu() ? kGpuBudget : kCpuBudget, spec, maxima);
  Lengths timed = {std::vector(static_cast<size_t>(sizes.batch), sizes.seqlenQ),
                   std::vector(static_cast<size_t>(sizes.batch), sizes.seqlenK)};

  // Uneven lengths for the comparison: no multiple of a tile, prefixes of other sizes, in a packed batch an empty one.
  std::mt19937_64 draw(seed);
  auto between = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(draw); };
  bool packed = spec.layout == Layout::kPacked;
  Maxima checkMaxima = maxima;
  checkMaxima.batch = sizes.batch;
  checkMaxima.seqlenQ = std::min(sizes.seqlenQ, kMostCheckedQueries);
  checkMaxima.seqlenK = std::min(sizes.seqlenK, kMostCheckedKeys);
  const Sizes checkSizes = fit(kCheckBudget, spec, checkMaxima);
  Lengths checked;
  for (int64_t i = 0; i < checkSizes.batch; ++i) {
    bool drawn = packed || i == 0; // in the dense layout all sequences are equally long
    int64_t lengthQ = drawn ? between((checkSizes.seqlenQ + 1) / 2, checkSizes.seqlenQ) : checked.q[0];
    int64_t lengthK = drawn ? between(lengthQ, checkSizes.seqlenK) : checked.k[0];
    if (packed && i == 1)
      lengthQ = lengthK = 0;
    checked.q.push_back(lengthQ);
    checked.k.push_back(lengthK);
  }

  NSA_RETURN_IF_ERROR(inputs.allocate(timed));
  int64_t rowsQ = sizes.batch * sizes.seqlenQ * spec.queryHeads;
  int64_t rowsK = sizes.batch * sizes.seqlenK * spec.kvHeads;
  NSA_RETURN_IF_ERROR(inputs.fillRandom(inputs.q, rowsQ * spec.qkDim, draw()));
  NSA_RETURN_IF_ERROR(inputs.fillRandom(inputs.k, rowsK * spec.qkDim, draw()));
  NSA_RETURN_IF_ERROR(inputs.fillRandom(inputs.v, rowsK * spec.vDim, draw()));
  Result<Bindings> timedBindings = inputs.bind(timed);
  if (!timedBindings)
    return timedBindings.status();
  Result<Bindings> checkedBindings = inputs.bind(checked);
  if (!checkedBindings)
    return checkedBindings.status();
  const int64_t checkedRows = std::reduce(checked.q.begin(), checked.q.end()) * spec.queryHeads;
  inputs.checkedOutBytes = checkedRows * spec.vDim * dtypeBytes(spec.dtype);
  inputs.checkedLseBytes = checkedRows * static_cast<int64_t>(sizeof(float));
  inputs.timedBindings = std::move(*timedBindings);
  inputs.checkedBindings = std::move(*checkedBindings);
  inputs.shape = "batch=" + std::to_string(sizes.batch) + " seqlen_q=" + std::to_string(sizes.seqlenQ) +
                 " seqlen_k=" + std::to_string(sizes.seqlenK);
  return inputs;
}

Status TuningInputs::allocate(const Lengths &largest) {
  int64_t queries = std::reduce(largest.q.begin(), largest.q.end());
  int64_t keys = std::reduce(largest.k.begin(), largest.k.end());
  int64_t bytes = dtypeBytes(spec.dtype);
  const struct {
    DeviceBuffer &buffer;
    int64_t bytes;
  } buffers[] = {{q, queries * spec.queryHeads * spec.qkDim * bytes},
                 {k, keys * spec.kvHeads * spec.qkDim * bytes},
                 {v, keys * spec.kvHeads * spec.vDim * bytes},
                 {out, queries * spec.queryHeads * spec.vDim * bytes},
                 {lse, queries * spec.queryHeads * static_cast<int64_t>(sizeof(float))}};
  for (const auto &wanted : buffers) {
    Result<DeviceBuffer> buffer = DeviceBuffer::allocate(*device, static_cast<size_t>(wanted.bytes));
    if (!buffer)
      return buffer.status();
    wanted.buffer = std::move(*buffer);
  }
  return Status::ok();
}

Status TuningInputs::fillRandom(const DeviceBuffer &buffer, int64_t elements, uint64_t seed) {
  NormalDraw draw(seed);
  const int64_t elementBytes = dtypeBytes(spec.dtype);
  const int64_t drawn = std::min(elements, kDrawnElements);
  std::vector<std::byte> host(static_cast<size_t>(drawn * elementBytes));
  for (int64_t i = 0; i < drawn; ++i) {
    const float value = draw();
    const uint16_t narrow = spec.dtype == DType::kBf16 ? floatToBf16(value) : floatToFp16(value);
    const void *source = spec.dtype == DType::kF32 ? static_cast<const void *>(&value) : &narrow;
    std::memcpy(host.data() + i * elementBytes, source, static_cast<size_t>(elementBytes));
  }
  auto *target = static_cast<std::byte *>(buffer.data());
  for (int64_t begin = 0; begin < elements; begin += drawn) {
    const int64_t count = std::min(drawn, elements - begin);
    NSA_RETURN_IF_ERROR(
        device->upload(target + begin * elementBytes, host.data(), static_cast<size_t>(count * elementBytes)));
  }
  return Status::ok();
}

int64_t TuningInputs::timeExtent(const std::vector<int64_t> &lengths) const {
  return spec.layout == Layout::kPacked ? std::reduce(lengths.begin(), lengths.end()) : lengths[0];
}

Result<Bindings> TuningInputs::bind(const Lengths &lengths) {
  bool packed = spec.layout == Layout::kPacked;
  Bindings bindings;
  auto set = [&](TensorName name, void *data, DType dtype, const std::vector<int64_t> &times, int64_t heads,
                 int64_t dim) {
    Tensor tensor;
    tensor.data = data;
    tensor.dtype = dtype;
    if (!packed)
      tensor.shape[static_cast<size_t>(tensor.rank++)] = static_cast<int64_t>(times.size());
    tensor.shape[static_cast<size_t>(tensor.rank++)] = timeExtent(times);
    tensor.shape[static_cast<size_t>(tensor.rank++)] = heads;
    if (dim)
      tensor.shape[static_cast<size_t>(tensor.rank++)] = dim;
    tensor.strides = rowMajor(tensor);
    bindings[static_cast<size_t>(name)] = tensor;
  };
  set(TensorName::kQ, q.data(), spec.dtype, lengths.q, spec.queryHeads, spec.qkDim);
  set(TensorName::kK, k.data(), spec.dtype, lengths.k, spec.kvHeads, spec.qkDim);
  set(TensorName::kV, v.data(), spec.dtype, lengths.k, spec.kvHeads, spec.vDim);
  set(TensorName::kOut, out.data(), spec.dtype, lengths.q, spec.queryHeads, spec.vDim);
  set(TensorName::kLse, lse.data(), DType::kF32, lengths.q, spec.queryHeads, 0);
  if (!packed)
    return bindings;

  const struct {
    TensorName name;
    const std::vector<int64_t> &lengths;
  } offsetTensors[] = {{TensorName::kCuSeqlensQ, lengths.q}, {TensorName::kCuSeqlensK, lengths.k}};
  for (const auto &wanted : offsetTensors) {
    std::vector<int32_t> host(wanted.lengths.size() + 1);
    for (size_t i = 0; i < wanted.lengths.size(); ++i)
      host[i + 1] = host[i] + static_cast<int32_t>(wanted.lengths[i]);
    Result<DeviceBuffer> buffer = DeviceBuffer::allocate(*device, host.size() * sizeof(int32_t));
    if (!buffer)
      return buffer.status();
    NSA_RETURN_IF_ERROR(device->upload(buffer->data(), host.data(), host.size() * sizeof(int32_t)));
    Tensor tensor;
    tensor.data = buffer->data();
    tensor.dtype = DType::kI32;
    tensor.rank = 1;
    tensor.shape[0] = static_cast<int64_t>(host.size());
    tensor.strides[0] = 1;
    bindings[static_cast<size_t>(wanted.name)] = tensor;
    offsets.push_back(std::move(*buffer));
  }
  return bindings;
}

Status TuningInputs::poisonOutputs() {
  // All bits set is a NaN in bf16, fp16 and fp32.
  std::vector<std::byte> poison(static_cast<size_t>(std::max(checkedOutBytes, checkedLseBytes)), std::byte{0xff});
  NSA_RETURN_IF_ERROR(device->upload(out.data(), poison.data(), static_cast<size_t>(checkedOutBytes)));
  return device->upload(lse.data(), poison.data(), static_cast<size_t>(checkedLseBytes));
}

Result<TuningResult> TuningInputs::readChecked() {
  const Tensor &outTensor = *checkedBindings[static_cast<size_t>(TensorName::kOut)];
  const Tensor &lseTensor = *checkedBindings[static_cast<size_t>(TensorName::kLse)];
  auto elements = [](const Tensor &tensor) {
    return static_cast<size_t>(
        std::accumulate(tensor.shape.begin(), tensor.shape.begin() + tensor.rank, int64_t{1}, std::multiplies<>()));
  };
  TuningResult result;
  result.rowElements = spec.vDim;
  result.out.resize(elements(outTensor));
  result.lse.resize(elements(lseTensor));
  NSA_RETURN_IF_ERROR(device->download(result.lse.data(), lse.data(), result.lse.size() * sizeof(float)));
  if (spec.dtype == DType::kF32) {
    NSA_RETURN_IF_ERROR(device->download(result.out.data(), out.data(), result.out.size() * sizeof(float)));
    return result;
  }
  std::vector<uint16_t> narrow(result.out.size());
  NSA_RETURN_IF_ERROR(device->download(narrow.data(), out.data(), narrow.size() * sizeof(uint16_t)));
  std::transform(narrow.begin(), narrow.end(), result.out.begin(),
                 spec.dtype == DType::kBf16 ? bf16ToFloat : fp16ToFloat);
  return result;
}

} // namespace nsa
