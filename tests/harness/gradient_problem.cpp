#include "tests/harness/gradient_problem.h"

#include "runtime/base/sequence_fields.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nsa::test {

using reference::OwnedTensor;
using reference::Sequence;
using reference::TensorView;

std::string_view placingName(Placing placing) {
  static constexpr std::string_view kNames[] = {"dense", "packed"};
  return kNames[static_cast<size_t>(placing)];
}

GradientProblem::GradientProblem(const Spec &spec, Placing placing, std::vector<SequenceLengths> lengths,
                                 std::mt19937_64 &random)
    : placing(placing) {
  attention.spec = spec;
  const auto batch = static_cast<int64_t>(lengths.size());
  const bool isCompressed = spec.op == Operator::kCmp;
  int64_t queryBatches = batch, queryTimes = lengths.front().queries;
  int64_t keyBatches = batch;
  int64_t keyTimes = isCompressed ? spec.compressedBlocks(lengths.front().keys) : lengths.front().keys;
  if (placing == Placing::kPacked) {
    std::vector<int32_t> queries = {0}, keys = {0};
    queryBatches = keyBatches = 1;
    keyTimes = 0;
    for (const SequenceLengths &own : lengths) {
      queries.push_back(queries.back() + static_cast<int32_t>(own.queries));
      keys.push_back(keys.back() + static_cast<int32_t>(own.keys));
      keyTimes += isCompressed ? spec.compressedBlocks(own.keys) : own.keys;
    }
    queryTimes = queries.back();
    attention.sequences = reference::packedSequences(queries, keys, spec);
  } else {
    attention.sequences = reference::denseSequences(batch, lengths.front().queries, lengths.front().keys);
  }
  q = draw(random, queryBatches, queryTimes, spec.queryHeads, spec.qkDim);
  dOut = draw(random, queryBatches, queryTimes, spec.queryHeads, spec.vDim);
  k = draw(random, keyBatches, keyTimes, spec.kvHeads, spec.qkDim);
  v = draw(random, keyBatches, keyTimes, spec.kvHeads, spec.vDim);
  attention.q = q.view();
  attention.k = k.view();
  attention.v = v.view();
}

OwnedTensor GradientProblem::draw(std::mt19937_64 &random, int64_t batches, int64_t times, int64_t heads,
                                  int64_t columns) const {
  const DType dtype = attention.spec.dtype;
  OwnedTensor tensor = OwnedTensor::make(dtype, batches, times, heads, columns);
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < batches * times * heads * columns; ++i)
    reference::storeElement(dtype, tensor.bytes.data(), i, normal(random));
  return tensor;
}

void GradientProblem::lowerScores() {
  for (int64_t row = 0; row < k.batches * k.times * k.heads; ++row)
    reference::storeElement(k.dtype, k.bytes.data(), row * k.columns, 4);
  for (const Sequence &sequence : sequences())
    for (int64_t head = 0; head < q.heads && sequence.queries > 0; ++head)
      reference::storeElement(q.dtype, q.bytes.data(), attention.q.offset(sequence.batch, sequence.queryBegin, head, 0),
                              -28 * std::sqrt(double(attention.spec.qkDim)));
}

void GradientProblem::alignKeys(double common, double gradientScale) {
  for (int64_t i = 0; i < q.batches * q.times * q.heads * q.columns; ++i)
    reference::storeElement(q.dtype, q.bytes.data(), i, 0);
  for (int64_t i = 0; i < dOut.batches * dOut.times * dOut.heads * dOut.columns; ++i)
    reference::storeElement(dOut.dtype, dOut.bytes.data(), i,
                            gradientScale * reference::loadElement(dOut.dtype, dOut.bytes.data(), i));
  for (const Sequence &sequence : sequences()) {
    const int64_t keys = attention.spec.compressedBlocks(sequence.keys);
    for (int64_t key = 0; key < keys; ++key)
      for (int64_t head = 0; head < k.heads; ++head)
        for (int64_t column = 0; column < k.columns; ++column)
          reference::storeElement(k.dtype, k.bytes.data(),
                                  k.view().offset(sequence.keyBatch, sequence.blockBegin + key, head, column),
                                  common * (1 + static_cast<double>(key) / static_cast<double>(keys)));
    common = -common;
  }
}

void GradientProblem::poisonLastKeys() {
  const bool isCompressed = attention.spec.op == Operator::kCmp;
  for (OwnedTensor *tensor : {&k, &v}) {
    const TensorView view = tensor->view();
    for (const Sequence &sequence : sequences()) {
      const int64_t keys = isCompressed ? attention.spec.compressedBlocks(sequence.keys) : sequence.keys;
      const int64_t last = (isCompressed ? sequence.blockBegin : sequence.keyBegin) + keys - 1;
      for (int64_t head = 0; head < tensor->heads && keys > 0; ++head)
        for (int64_t column = 0; column < tensor->columns; ++column)
          reference::storeElement(tensor->dtype, tensor->bytes.data(),
                                  view.offset(sequence.keyBatch, last, head, column),
                                  std::numeric_limits<double>::quiet_NaN());
    }
  }
}

void GradientProblem::poisonFirstKeys() {
  const TensorView view = k.view();
  for (const Sequence &sequence : sequences()) {
    const bool isCompressed = attention.spec.op == Operator::kCmp;
    const int64_t keys = isCompressed ? attention.spec.compressedBlocks(sequence.keys) : sequence.keys;
    const int64_t first = isCompressed ? sequence.blockBegin : sequence.keyBegin;
    for (int64_t head = 0; head < k.heads && keys > 0; ++head)
      for (int64_t column = 0; column < k.columns; ++column)
        reference::storeElement(k.dtype, k.bytes.data(), view.offset(sequence.keyBatch, first, head, column),
                                std::numeric_limits<double>::quiet_NaN());
  }
}

void GradientProblem::sinkFirstKeys() {
  for (int64_t row = 0; row < q.batches * q.times * q.heads; ++row)
    reference::storeElement(q.dtype, q.bytes.data(), row * q.columns, 1);
  for (const Sequence &sequence : sequences())
    for (int64_t head = 0; head < k.heads && sequence.keys > 0; ++head)
      reference::storeElement(k.dtype, k.bytes.data(), k.view().offset(sequence.keyBatch, sequence.keyBegin, head, 0),
                              -std::numeric_limits<double>::infinity());
}

void GradientProblem::poisonFirstQueries() {
  for (const Sequence &sequence : sequences())
    for (int64_t head = 0; head < q.heads && sequence.queries > 0; ++head)
      for (int64_t column = 0; column < q.columns; ++column)
        reference::storeElement(q.dtype, q.bytes.data(),
                                attention.q.offset(sequence.batch, sequence.queryBegin, head, column),
                                std::numeric_limits<double>::quiet_NaN());
}

ProgramKernel::Pairs GradientProblem::fixed() const {
  const Spec &spec = attention.spec;
  return {{"dtype", std::string(dtypeName(spec.dtype))},
          {"qk_dim", std::to_string(spec.qkDim)},
          {"v_dim", std::to_string(spec.vDim)},
          {"group", std::to_string(spec.group())},
          {"packed", placing == Placing::kPacked ? "1" : "0"}};
}

Arguments GradientProblem::arguments(Device &device) {
  const Sequence &first = sequences().front();
  const double scale = reference::softmaxScale(attention.spec);
  Arguments arguments;
  arguments.i32("seqlen_q", static_cast<int32_t>(first.queries))
      .i32("seqlen_k", static_cast<int32_t>(first.keys))
      .i32("query_begin", 0)
      .i32("query_end", std::numeric_limits<int32_t>::max())
      .i32("query_step", 1)
      .i32("window", attention.spec.window)
      .f32("scale", static_cast<float>(scale))
      .f32("scale_log2", static_cast<float>(scale / std::log(2.0)));
  // The record Sequence of templates/tile/library/sequence.tile.
  std::vector<int32_t> rows;
  for (const Sequence &s : sequences())
    for (const int64_t field : {s.queryBegin, s.queries, s.keyBegin, s.keys, s.blockBegin,
                                attention.spec.compressedBlocks(s.keys), s.keyBatch, s.batch})
      rows.push_back(static_cast<int32_t>(field));
  onDevice.push_back(DeviceArray::of(device, rows, {static_cast<int64_t>(sequences().size()), kSequenceFields}));
  onDevice.back().bind(arguments, "sequences", /*columnsToo=*/true);
  for (const auto &[name, tensor] : {std::pair("k", &k), {"v", &v}})
    onDevice.emplace_back(array(device, *tensor)).bind(arguments, name);
  return arguments;
}

DeviceArray GradientProblem::array(Device &device, const OwnedTensor &tensor) const {
  return {device,
          tensor.bytes.data(),
          tensor.bytes.size(),
          static_cast<size_t>(dtypeBytes(tensor.dtype)),
          {tensor.batches, tensor.times, tensor.heads, tensor.columns}};
}

DeviceArray GradientProblem::rows(Device &device, const std::vector<float> &values) const {
  return DeviceArray::of(device, values, queryShape({attention.spec.queryHeads}));
}

DeviceArray GradientProblem::untouched(Device &device, const OwnedTensor &like) const {
  OwnedTensor tensor = OwnedTensor::make(like.dtype, like.batches, like.times, like.heads, like.columns);
  for (int64_t i = 0; i < like.batches * like.times * like.heads * like.columns; ++i)
    reference::storeElement(like.dtype, tensor.bytes.data(), i, std::numeric_limits<double>::quiet_NaN());
  return array(device, tensor);
}

std::vector<double> GradientProblem::read(const DeviceArray &array, const OwnedTensor &like) const {
  const std::vector<std::byte> bytes = array.read<std::byte>();
  std::vector<double> values(static_cast<size_t>(like.batches * like.times * like.heads * like.columns));
  reference::loadElements(like.dtype, bytes.data(), 0, values);
  return values;
}

std::vector<int64_t> GradientProblem::queryShape(std::vector<int64_t> further) const {
  further.insert(further.begin(), {q.batches, q.times});
  return further;
}

std::map<std::string, int64_t> GradientProblem::gridSizes() const {
  int64_t queries = 0, keys = 0;
  for (const Sequence &sequence : sequences()) {
    queries = std::max(queries, sequence.queries);
    keys = std::max(keys, sequence.keys);
  }
  return {{"batch", static_cast<int64_t>(sequences().size())},
          {"kv_heads", attention.spec.kvHeads},
          {"max_seqlen_q", queries},
          {"max_seqlen_k", keys},
          {"max_tokens_q", q.batches * q.times},
          {"splits", 1}};
}

std::vector<double> GradientProblem::gradientOfOut() const {
  return reference::readRows(attention.sequences, dOut.view(), attention.spec.queryHeads, attention.spec.vDim);
}

} // namespace nsa::test
