#include "tools/support/operator_check.h"

#include "runtime/base/signature.h"
#include "tools/support/kv_cache.h"

#include <algorithm>
#include <cstring>

namespace nsa::tools {
namespace {

using reference::OwnedTensor;
using reference::Sequence;
using reference::TensorView;
using T = TensorName;

// "" or where the first byte differs.
std::string difference(const HostTensor &actual, const HostTensor &expected) {
  const auto [place, unused] = std::mismatch(actual.bytes.begin(), actual.bytes.end(), expected.bytes.begin());
  if (place == actual.bytes.end())
    return "";
  int64_t element = (place - actual.bytes.begin()) / dtypeBytes(actual.dtype);
  std::vector<int64_t> index(actual.shape.size());
  for (size_t axis = index.size(); axis-- > 0;) {
    index[axis] = element % actual.shape[axis];
    element /= actual.shape[axis];
  }
  return "element " + shapeText(index) + " of " + shapeText(actual.shape) +
         " is neither as it was nor what the new tokens make of it";
}

class CacheChecker {
public:
  CacheChecker(const OperatorInputs &inputs, const NamedTensors &outputs)
      : inputs(inputs), spec(inputs.spec), outputs(outputs), table(inputs.find(T::kBlockTable, T::kBlockTable)),
        sequences(sequencesInCache(inputs)) {
    for (const auto &[name, tensor] : inputs.tensors)
      if (isUpdated(name))
        expected.emplace(name, tensor);
  }

  std::vector<OutputCheck> run() {
    appendTokens(spec, inputs.tensors, spec, sequences, table, expected);
    const std::span<int32_t> lengths = expected.at(T::kCacheSeqlens).integers();
    int64_t tokens = 0;
    for (const Sequence &sequence : sequences) {
      lengths[static_cast<size_t>(sequence.keyBatch)] = static_cast<int32_t>(sequence.keys);
      tokens += sequence.queries;
    }
    if (takes(spec, T::kKCompCache))
      checkCompressed();
    for (const auto &[name, tensor] : expected) {
      OutputCheck &check = checkOf(name);
      const std::string fault = difference(outputs.at(name), tensor);
      if (check.text.empty())
        check.text = "as it was but for " + std::to_string(tokens) + " new tokens, bit for bit";
      if (!fault.empty()) {
        check.within = check.isRightElsewhere = false;
        check.text = fault;
      }
    }
    return std::move(checks);
  }

private:
  OutputCheck &checkOf(T name) {
    const std::string text(tensorName(name));
    const auto found = std::ranges::find(checks, text, &OutputCheck::name);
    return found != checks.end() ? *found : checks.emplace_back(OutputCheck{.name = text, .within = true});
  }

  int64_t blocksBefore(const Sequence &sequence) const {
    return spec.compressedBlocks(sequence.keys - sequence.queries);
  }

  // The tokens that new blocks begin with and all behind them: first the tokens of the ring, then the new tokens.
  OwnedTensor rawTokens(T ring, T tokens, T otherTokens, int64_t columns) const {
    int64_t most = 0;
    for (const Sequence &sequence : sequences)
      most = std::max(most, sequence.keys - blocksBefore(sequence) * spec.cmpStride);
    OwnedTensor raw =
        OwnedTensor::make(spec.dtype, static_cast<int64_t>(sequences.size()), most, spec.kvHeads, columns);
    const T source = inputs.tensors.contains(tokens) ? tokens : otherTokens;
    const TensorView old = cacheView(spec, ring, inputs.tensors, nullptr), fresh = viewOf(spec, source, inputs[source]);
    const TensorView to = raw.view();
    const int64_t element = dtypeBytes(spec.dtype);
    for (const Sequence &sequence : sequences) {
      const int64_t begin = blocksBefore(sequence) * spec.cmpStride;
      for (int64_t token = begin; token < sequence.keys; ++token) {
        const int64_t query = token - sequence.position(0);
        const std::byte *from =
            query < 0 ? old.data + old.offset(sequence.keyBatch, token % spec.cmpBlock, 0, 0) * element
                      : fresh.data + fresh.offset(sequence.batch, sequence.queryBegin + query, 0, 0) * element;
        std::memcpy(raw.bytes.data() + to.offset(sequence.keyBatch, token - begin, 0, 0) * element, from,
                    static_cast<size_t>(to.timeStride * element));
      }
    }
    return raw;
  }

  void checkCompressed() {
    const OwnedTensor k = rawTokens(T::kKRaw, T::kKCmp, T::kK, spec.qkDim);
    const OwnedTensor v = rawTokens(T::kVRaw, T::kVCmp, T::kV, spec.vDim);
    std::vector<Sequence> raw;
    for (const Sequence &sequence : sequences)
      raw.push_back({.keyBatch = sequence.keyBatch, .keys = sequence.keys - blocksBefore(sequence) * spec.cmpStride});
    const reference::Nsa nsa = referenceNsa(inputs);
    const reference::Compressed made = reference::compress({spec, k.view(), v.view(), nsa.phiK, nsa.phiV, raw});
    const std::vector<Sequence> rows = reference::compressedRows(raw, spec);
    checkBlocks(T::kKCompCache, rows, made.k, spec.qkDim);
    checkBlocks(T::kVCompCache, rows, made.v, spec.vDim);
  }

  // `rows`: the new blocks of each sequence, counted from 0 as they stand in `made`.
  void checkBlocks(T name, const std::vector<Sequence> &rows, const OwnedTensor &made, int64_t columns) {
    std::vector<Sequence> places = rows; // in the pool
    for (size_t s = 0; s < places.size(); ++s)
      places[s].queryBegin = blocksBefore(sequences[s]);
    OutputCheck &check = checkOf(name);
    const int64_t count = reference::rowEnd(rows);
    check.text = "as it was, bit for bit";
    if (count == 0)
      return;
    const TensorView actual = cacheView(spec, name, outputs, table);
    const reference::Tolerance tolerance = reference::toleranceOf(spec.dtype);
    check.error = reference::compareRows(places, spec.kvHeads, columns,
                                         reference::readRows(rows, made.view(), spec.kvHeads, columns), actual);
    check.limits = tolerance;
    check.within = check.error->within(tolerance);
    check.isRightElsewhere = check.error->judgedWithin(tolerance);
    check.text = std::to_string(count) + " new blocks, all else as it was: " + check.error->toString(tolerance);
    // What was computed is compared; everything else must be as it was.
    HostTensor &pool = expected.at(name);
    const int64_t element = dtypeBytes(spec.dtype);
    for (const Sequence &place : places)
      for (int64_t i = 0; i < place.queries; ++i) {
        const int64_t offset = actual.offset(place.batch, place.queryBegin + i, 0, 0) * element;
        std::memcpy(pool.bytes.data() + offset, actual.data + offset, static_cast<size_t>(actual.timeStride * element));
      }
  }

  const OperatorInputs &inputs;
  const Spec &spec;
  const NamedTensors &outputs;
  const HostTensor *table;
  std::vector<Sequence> sequences;
  NamedTensors expected;
  std::vector<OutputCheck> checks;
};

} // namespace

std::vector<OutputCheck> checkCache(const OperatorInputs &inputs, const NamedTensors &outputs) {
  return CacheChecker(inputs, outputs).run();
}

} // namespace nsa::tools
