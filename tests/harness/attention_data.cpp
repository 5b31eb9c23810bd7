#include "tests/harness/attention_data.h"

#include "tools/reference/elements.h"
#include "tools/support/standard_normal.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace nsa::test {
namespace {

constexpr std::byte kPoison{0xff}; // 0xff in every byte is a NaN of all three types
constexpr int64_t kRowGap = 3, kTimeGap = 10, kBatchGap = 29, kBase = 5; // elements, multiples of nothing useful

} // namespace

PlacedTensor::PlacedTensor(DType dtype, bool packed, std::array<int64_t, 4> extents, Placement placement)
    : type(dtype), packed(packed), hasColumns(extents[3] != 0), extents(extents) {
  const auto &[batches, times, heads, columns] = extents;
  const bool gaps = placement == Placement::kGaps;
  const int64_t row = std::max<int64_t>(1, columns) + (gaps ? kRowGap : 0);
  if (placement == Placement::kHeadMajor)
    strides = {heads * times * row, row, times * row};
  else
    strides = {times * (heads * row + (gaps ? kTimeGap : 0)) + (gaps ? kBatchGap : 0),
               heads * row + (gaps ? kTimeGap : 0), row};
  base = gaps ? kBase : 0;
  memory.assign(static_cast<size_t>((base + batches * strides[0] + (gaps ? kRowGap : 0)) * dtypeBytes(dtype)), kPoison);
}

int64_t PlacedTensor::offset(int64_t batch, int64_t time, int64_t head, int64_t column) const {
  return base + batch * strides[0] + time * strides[1] + head * strides[2] + column;
}

double PlacedTensor::get(int64_t batch, int64_t time, int64_t head, int64_t column) const {
  return reference::loadElement(type, memory.data(), offset(batch, time, head, column));
}

void PlacedTensor::set(int64_t batch, int64_t time, int64_t head, int64_t column, float value) {
  reference::storeElement(type, memory.data(), offset(batch, time, head, column), value);
}

void PlacedTensor::fillRow(int64_t batch, int64_t time, int64_t head, float value) {
  for (int64_t column = 0; column < std::max<int64_t>(1, extents[3]); ++column)
    set(batch, time, head, column, value);
}

void PlacedTensor::poison() { std::fill(memory.begin(), memory.end(), kPoison); }

int64_t PlacedTensor::strayBytes() const {
  const size_t size = static_cast<size_t>(dtypeBytes(type));
  std::vector<bool> element(memory.size(), false);
  for (int64_t batch = 0; batch < extents[0]; ++batch)
    for (int64_t time = 0; time < extents[1]; ++time)
      for (int64_t head = 0; head < extents[2]; ++head)
        for (int64_t column = 0; column < std::max<int64_t>(1, extents[3]); ++column)
          std::fill_n(element.begin() + offset(batch, time, head, column) * static_cast<int64_t>(size), size, true);
  int64_t stray = 0;
  for (size_t i = 0; i < memory.size(); ++i)
    stray += !element[i] && memory[i] != kPoison;
  return stray;
}

reference::TensorView PlacedTensor::view() const {
  return {.data = memory.data() + base * dtypeBytes(type),
          .dtype = type,
          .batchStride = strides[0],
          .timeStride = strides[1],
          .headStride = strides[2]};
}

nsa_tensor PlacedTensor::apiTensor(void *device) const {
  nsa_tensor tensor = NSA_INIT(nsa_tensor);
  tensor.data = static_cast<std::byte *>(device) + base * dtypeBytes(type);
  tensor.dtype = static_cast<nsa_dtype>(type);
  for (int dimension = packed ? 1 : 0; dimension < (hasColumns ? 4 : 3); ++dimension) {
    tensor.shape[tensor.rank] = extents[static_cast<size_t>(dimension)];
    tensor.strides[tensor.rank] = dimension == 3 ? 1 : strides[static_cast<size_t>(dimension)];
    ++tensor.rank;
  }
  return tensor;
}

reference::Attention AttentionData::problem() const {
  reference::Attention problem;
  problem.spec = shape.spec();
  problem.q = q.view();
  problem.k = k.view();
  problem.v = v.view();
  if (shape.layout == Layout::kPacked)
    problem.sequences = reference::packedSequences(cuSeqlensQ, cuSeqlensK, problem.spec);
  else if (!shape.sequences.empty())
    problem.sequences = reference::denseSequences(static_cast<int64_t>(shape.sequences.size()),
                                                  shape.sequences[0].queries, shape.sequences[0].keys);
  return problem;
}

AttentionData AttentionData::draw(const AttentionCase &shape, std::mt19937_64 &random) {
  AttentionData data;
  data.shape = shape;
  const bool packed = shape.layout == Layout::kPacked;
  const int64_t batches = packed ? 1 : static_cast<int64_t>(shape.sequences.size());
  const int64_t queries = packed ? shape.queryRows() + shape.unusedRows : shape.sequences[0].queries;
  const int64_t keys = packed ? shape.keyRows() + shape.unusedRows : shape.sequences[0].keys;
  const int64_t queryHeads = int64_t{shape.kvHeads} * shape.group;
  data.q = PlacedTensor(shape.dtype, packed, {batches, queries, queryHeads, shape.qkDim}, shape.placement);
  data.k = PlacedTensor(shape.dtype, packed, {batches, keys, shape.kvHeads, shape.qkDim}, shape.placement);
  data.v = PlacedTensor(shape.dtype, packed, {batches, keys, shape.kvHeads, shape.vDim}, shape.placement);
  data.out = PlacedTensor(shape.dtype, packed, {batches, queries, queryHeads, shape.vDim}, shape.placement);
  data.lse = PlacedTensor(DType::kF32, packed, {batches, queries, queryHeads, 0}, shape.placement);
  if (packed) {
    data.cuSeqlensQ = data.cuSeqlensK = {0};
    for (const Lengths &sequence : shape.sequences) {
      data.cuSeqlensQ.push_back(data.cuSeqlensQ.back() + static_cast<int32_t>(sequence.queries));
      data.cuSeqlensK.push_back(data.cuSeqlensK.back() + static_cast<int32_t>(sequence.keys));
    }
  }

  tools::StandardNormal normal;
  // A row of one or two values may cancel to nearly nothing, or be one value that is nearly nothing, and its relative
  // error would measure that instead of the kernel. Values of at least one do not cancel.
  auto drawValue = [&] { return shape.vDim < 8 ? 1 + std::abs(normal(random)) : normal(random); };
  for (const reference::Sequence &sequence : data.problem().sequences) {
    for (int64_t time = sequence.queryBegin; time < sequence.queryBegin + sequence.queries; ++time)
      for (int64_t head = 0; head < queryHeads; ++head)
        for (int64_t column = 0; column < shape.qkDim; ++column)
          data.q.set(sequence.batch, time, head, column, normal(random));
    const int64_t firstPosition = sequence.keys - sequence.queries;
    const int64_t firstKey = sequence.queries == 0           ? sequence.keys
                             : shape.op == Operator::kWindow ? std::max<int64_t>(0, firstPosition - shape.window + 1)
                                                             : 0;
    for (int64_t time = sequence.keyBegin + firstKey; time < sequence.keyBegin + sequence.keys; ++time)
      for (int64_t head = 0; head < shape.kvHeads; ++head) {
        for (int64_t column = 0; column < shape.qkDim; ++column)
          data.k.set(sequence.keyBatch, time, head, column, normal(random));
        for (int64_t column = 0; column < shape.vDim; ++column)
          data.v.set(sequence.keyBatch, time, head, column, drawValue());
      }
  }
  return data;
}

} // namespace nsa::test
