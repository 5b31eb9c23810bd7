#include "tools/support/kv_cache.h"

#include "runtime/base/signature.h"
#include "tools/reference/nsa.h"
#include "tools/support/operator_check.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <numeric>
#include <random>

namespace nsa::tools {
namespace {

using reference::Sequence;
using reference::TensorView;
using T = TensorName;

// Which tokens go where, each with the name that serves where the first is not there.
struct Target {
  T cache, otherCache, tokens, otherTokens;
};
constexpr Target kTargets[] = {
    {T::kKSelCache, T::kKCache, T::kKSel, T::kK}, {T::kVSelCache, T::kVCache, T::kVSel, T::kV},
    {T::kKWinCache, T::kKCache, T::kKWin, T::kK}, {T::kVWinCache, T::kVCache, T::kVWin, T::kV},
    {T::kKRaw, T::kKRaw, T::kKCmp, T::kK},        {T::kVRaw, T::kVRaw, T::kVCmp, T::kV},
};

T given(T name, T otherwise, const NamedTensors &tensors) { return tensors.contains(name) ? name : otherwise; }

void copyRow(const HostTensor &from, int64_t fromOffset, HostTensor &to, int64_t toOffset) {
  const auto element = static_cast<int64_t>(dtypeBytes(to.dtype));
  const int64_t row = to.shape[2] * to.shape[3];
  std::memcpy(to.bytes.data() + toOffset * element, from.bytes.data() + fromOffset * element,
              static_cast<size_t>(row * element));
}

// One making of a cache. Members are what the steps share.
class CacheMaker {
public:
  CacheMaker(const OperatorInputs &history, int32_t pageSize, uint64_t seed)
      : history(history), sequences(sequencesOf(history)), seed(seed) {
    spec = history.spec;
    spec.op = withCache(spec.op);
    spec.pageSize = pageSize;
    for (const Sequence &sequence : sequences) {
      assert(sequence.queries <= sequence.keys);
      before.push_back(sequence.keys - sequence.queries);
    }
  }

  OperatorInputs run() {
    settleExtents();
    takeNewTokens();
    addLengths();
    for (const Operand &operand : operandsOf(spec.op))
      if (operand.role == Operand::Role::kInOut && takes(spec, operand.name))
        inputs.tensors[operand.name] =
            HostTensor::make(spec.dtype, shapeOf(spec, operand.name, inputs.extents), kNanByte);
    std::vector<Sequence> old; // tokens of the history as what a call brings
    for (size_t s = 0; s < sequences.size(); ++s)
      old.push_back({.batch = sequences[s].keyBatch,
                     .queryBegin = sequences[s].keyBegin,
                     .queries = before[s],
                     .keyBatch = static_cast<int64_t>(s),
                     .keys = before[s]});
    appendTokens(spec, history.tensors, history.spec, old, table(), inputs.tensors);
    if (takes(spec, T::kKCompCache))
      compress();
    return std::move(inputs);
  }

private:
  const HostTensor *table() const { return inputs.find(T::kBlockTable, T::kBlockTable); }

  void settleExtents() {
    CallExtents &extents = inputs.extents;
    const int64_t unit = spec.pageSize ? spec.pageSize : spec.selBlock;
    const int64_t longest = std::ranges::max(sequences, {}, &Sequence::keys).keys;
    extents.batch = static_cast<int64_t>(sequences.size());
    extents.timeQ = extents.timeK = history.extents.timeQ;
    extents.room = (longest + unit - 1) / unit * unit + unit;
    extents.pages = spec.pageSize ? extents.batch * (extents.room / unit) + kSparePages : 0;
    inputs.spec = spec;
    inputs.maxima = history.maxima;
    inputs.maxima.seqlenK = extents.room;
  }

  // Of keys and values the last rows of each sequence.
  void takeNewTokens() {
    for (const auto &[name, tensor] : history.tensors) {
      if (name == T::kCuSeqlensK)
        continue;
      if (tensorRule(name).lead != Lead::kKeys) {
        inputs.tensors[name] = tensor;
        continue;
      }
      HostTensor rows = HostTensor::make(tensor.dtype, shapeOf(spec, name, inputs.extents));
      const TensorView from = viewOf(history.spec, name, tensor), to = viewOf(spec, name, rows);
      const int64_t element = dtypeBytes(tensor.dtype);
      for (size_t s = 0; s < sequences.size(); ++s) {
        const Sequence &sequence = sequences[s];
        if (sequence.queries == 0)
          continue; // a tensor without rows has no address
        std::memcpy(rows.bytes.data() + to.offset(sequence.batch, sequence.queryBegin, 0, 0) * element,
                    tensor.bytes.data() + from.offset(sequence.keyBatch, sequence.keyBegin + before[s], 0, 0) * element,
                    static_cast<size_t>(sequence.queries * to.timeStride * element));
      }
      inputs.tensors[name] = std::move(rows);
    }
  }

  void addLengths() {
    HostTensor lengths = HostTensor::make(DType::kI32, shapeOf(spec, T::kCacheSeqlens, inputs.extents));
    std::ranges::copy(before, lengths.integers().begin());
    inputs.tensors[T::kCacheSeqlens] = std::move(lengths);
    if (!spec.pageSize)
      return;
    const std::vector<int32_t> order = drawPages(inputs.extents.pages, seed);
    HostTensor pages = HostTensor::make(DType::kI32, shapeOf(spec, T::kBlockTable, inputs.extents));
    std::copy_n(order.begin(), pages.elements(), pages.integers().begin());
    inputs.tensors[T::kBlockTable] = std::move(pages);
  }

  void compress() {
    const reference::Nsa nsa = referenceNsa(history);
    std::vector<Sequence> old = sequences; // as if they ended before the new tokens
    int64_t blocks = 0;
    for (size_t s = 0; s < old.size(); ++s) {
      old[s].keys = before[s];
      old[s].blockBegin = spec.layout == Layout::kPacked ? blocks : 0;
      blocks += spec.compressedBlocks(before[s]);
    }
    const reference::Compressed rows = reference::compress({history.spec, nsa.kCmp, nsa.vCmp, nsa.phiK, nsa.phiV, old});
    for (const auto &[name, made] : {std::pair(T::kKCompCache, &rows.k), std::pair(T::kVCompCache, &rows.v)}) {
      const HostTensor from{made->dtype, {}, made->bytes};
      const TensorView to = cacheView(spec, name, inputs.tensors, table()), source = made->view();
      for (size_t s = 0; s < old.size(); ++s)
        for (int64_t c = 0; c < spec.compressedBlocks(before[s]); ++c)
          copyRow(from, source.offset(old[s].keyBatch, old[s].blockBegin + c, 0, 0), inputs.tensors.at(name),
                  to.offset(static_cast<int64_t>(s), c, 0, 0));
    }
  }

  const OperatorInputs &history;
  std::vector<Sequence> sequences; // of the history
  uint64_t seed;
  Spec spec;
  std::vector<int64_t> before; // tokens that are not new
  OperatorInputs inputs;
};

} // namespace

std::vector<int32_t> drawPages(int64_t pages, uint64_t seed) {
  std::vector<int32_t> order(static_cast<size_t>(pages));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(seed);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

TensorView cacheView(const Spec &spec, T name, const NamedTensors &tensors, const HostTensor *table) {
  const auto found = tensors.find(name);
  if (found == tensors.end())
    return {};
  TensorView view = viewOf(spec, name, found->second);
  if (table && tensorRule(name).lead != Lead::kRing) {
    view.pages = table->integers();
    view.pagesPerSequence = table->shape[1];
    view.pageRows = found->second.shape[1];
  }
  return view;
}

std::vector<Sequence> sequencesInCache(const OperatorInputs &inputs) {
  const std::span<const int32_t> lengths = inputs[T::kCacheSeqlens].integers();
  const bool packed = inputs.spec.layout == Layout::kPacked;
  std::vector<Sequence> sequences;
  for (int64_t s = 0; s < inputs.extents.batch; ++s) {
    const int32_t *offsets = packed ? &inputs[T::kCuSeqlensQ].integers()[static_cast<size_t>(s)] : nullptr;
    const int64_t count = packed ? offsets[1] - offsets[0] : inputs.extents.timeQ;
    sequences.push_back({.batch = packed ? 0 : s,
                         .queryBegin = packed ? offsets[0] : 0,
                         .queries = count,
                         .keyBatch = s,
                         .keys = lengths[static_cast<size_t>(s)] + count,
                         .firstRow = packed ? offsets[0] : s * count});
  }
  return sequences;
}

void appendTokens(const Spec &spec, const NamedTensors &tokens, const Spec &tokensSpec,
                  const std::vector<Sequence> &sequences, const HostTensor *table, NamedTensors &cache) {
  for (const Target &target : kTargets) {
    const T pool = given(target.cache, target.otherCache, cache);
    const auto source = tokens.find(given(target.tokens, target.otherTokens, tokens));
    if (!takes(spec, target.cache) || !cache.contains(pool) || source == tokens.end())
      continue;
    const TensorView from = viewOf(tokensSpec, source->first, source->second);
    const TensorView to = cacheView(spec, pool, cache, table);
    const bool isRing = tensorRule(pool).lead == Lead::kRing;
    for (const Sequence &sequence : sequences)
      for (int64_t i = 0; i < sequence.queries; ++i) {
        const int64_t token = sequence.position(i);
        copyRow(source->second, from.offset(sequence.batch, sequence.queryBegin + i, 0, 0), cache.at(pool),
                to.offset(sequence.keyBatch, isRing ? token % spec.cmpBlock : token, 0, 0));
      }
  }
}

OperatorInputs cacheInputs(const OperatorInputs &history, int32_t pageSize, uint64_t seed) {
  assert(definitionOf(history.spec.op).isForward());
  return CacheMaker(history, pageSize, seed).run();
}

} // namespace nsa::tools
