#include "bench/measure/plain_loop.h"

#include "tools/support/operator_check.h"

#include <cmath>
#include <limits>

namespace nsa::bench {
namespace {

using reference::KeyRange;
using tools::HostTensor;
using tools::OperatorInputs;
using T = TensorName;

const float *floatsOf(const HostTensor &tensor) { return reinterpret_cast<const float *>(tensor.bytes.data()); }
float *floatsOf(HostTensor &tensor) { return reinterpret_cast<float *>(tensor.bytes.data()); }

struct AttentionLoop {
  const float *q, *k, *v;
  float *out, *weights;
  int64_t heads, kvHeads, qkDim, vDim;
  float scale;
  const std::vector<std::vector<KeyRange>> &allowed;
};

struct CompressLoop {
  const float *x;
  float *out;
  int64_t blocks, block, stride, row; // tokens, tokens, elements of a token
};

struct CombineLoop {
  const float *branches[3], *gates;
  float *out;
  int64_t rows, dim;
};

// Sums side by side, which the compiler lays into vectors of either width: one alone would wait for each addition.
constexpr int64_t kLanes = 32;

[[gnu::always_inline]] inline float dot(const float *a, const float *b, int64_t count) {
  float sums[kLanes] = {};
  for (int64_t i = 0; i < count; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane)
      sums[lane] += a[i + lane] * b[i + lane];
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t lane = 0; lane < half; ++lane)
      sums[lane] += sums[lane + half];
  return sums[0];
}

// One row of a query head: scores, softmax, weighted sum.
[[gnu::always_inline]] inline void attendRow(const AttentionLoop &loop, int64_t query, int64_t head) {
  const int64_t kvHead = head / (loop.heads / loop.kvHeads);
  const std::vector<KeyRange> &ranges = loop.allowed[static_cast<size_t>(query * loop.kvHeads + kvHead)];
  const float *q = loop.q + (query * loop.heads + head) * loop.qkDim;
  float largest = -std::numeric_limits<float>::infinity();
  int64_t count = 0;
  for (const KeyRange &range : ranges)
    for (int64_t key = range.begin; key < range.end; ++key) {
      const float score = loop.scale * dot(q, loop.k + (key * loop.kvHeads + kvHead) * loop.qkDim, loop.qkDim);
      largest = std::max(largest, score);
      loop.weights[count++] = score;
    }
  float sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += loop.weights[i] = std::exp(loop.weights[i] - largest);
  float *out = loop.out + (query * loop.heads + head) * loop.vDim;
  std::fill_n(out, loop.vDim, 0.0F);
  const float *weight = loop.weights;
  for (const KeyRange &range : ranges)
    for (int64_t key = range.begin; key < range.end; ++key, ++weight) {
      const float *v = loop.v + (key * loop.kvHeads + kvHead) * loop.vDim;
      for (int64_t c = 0; c < loop.vDim; ++c)
        out[c] += *weight * v[c];
    }
  for (int64_t c = 0; count > 0 && c < loop.vDim; ++c)
    out[c] /= sum;
}

[[gnu::always_inline]] inline void runLoop(const AttentionLoop &loop) {
  const auto queries = static_cast<int64_t>(loop.allowed.size()) / loop.kvHeads;
  for (int64_t query = 0; query < queries; ++query)
    for (int64_t head = 0; head < loop.heads; ++head)
      attendRow(loop, query, head);
}

[[gnu::always_inline]] inline void runLoop(const CompressLoop &loop) {
  for (int64_t block = 0; block < loop.blocks; ++block)
    for (int64_t column = 0; column < loop.row; column += kLanes) {
      float sums[kLanes] = {};
      for (int64_t token = block * loop.stride; token < block * loop.stride + loop.block; ++token)
        for (int64_t lane = 0; lane < kLanes; ++lane)
          sums[lane] += loop.x[token * loop.row + column + lane];
      for (int64_t lane = 0; lane < kLanes; ++lane)
        loop.out[block * loop.row + column + lane] = sums[lane] / static_cast<float>(loop.block);
    }
}

[[gnu::always_inline]] inline void runLoop(const CombineLoop &loop) {
  for (int64_t row = 0; row < loop.rows; ++row)
    for (int64_t c = row * loop.dim; c < (row + 1) * loop.dim; ++c) {
      float sum = 0;
      for (int64_t branch = 0; branch < 3; ++branch)
        sum += loop.gates[row * 3 + branch] * loop.branches[branch][c];
      loop.out[c] = sum;
    }
}

// The loops once for each width of vectors, whatever the rest of the program is compiled for.
template <typename Loop> __attribute__((target("avx512f"))) void run512(const Loop &loop) { runLoop(loop); }
template <typename Loop> __attribute__((target("avx2,fma"))) void run256(const Loop &loop) { runLoop(loop); }
template <typename Loop> void runAt(int lanes, const Loop &loop) { lanes == 16 ? run512(loop) : run256(loop); }

} // namespace

PlainLoop::PlainLoop(const OperatorInputs &inputs, int lanes) : inputs(inputs), lanes(lanes) {
  for (const T name : tools::requiredOutputs(inputs.spec.op))
    outputs.emplace(
        name, HostTensor::make(tools::dtypeOf(inputs.spec, name), tools::shapeOf(inputs.spec, name, inputs.extents)));
  if (definitionOf(inputs.spec.op).isAttention())
    prepareAttention();
}

void PlainLoop::prepareAttention() {
  const Spec &spec = inputs.spec;
  reference::Attention attention;
  attention.spec = spec;
  attention.sequences = tools::sequencesOf(inputs);
  if (definitionOf(spec.op).keys == MetKeys::kListed)
    attention.blockLists = reference::readBlockLists(attention.sequences, tools::listView(spec, inputs[T::kBlockList]),
                                                     spec.kvHeads, spec.selCount);
  const reference::Sequence &sequence = attention.sequences.front();
  for (int64_t query = 0; query < sequence.queries; ++query)
    for (int64_t kvHead = 0; kvHead < spec.kvHeads; ++kvHead)
      allowed.push_back(reference::allowedKeys(attention, sequence, query, kvHead));
  weights.resize(static_cast<size_t>(sequence.keys));
}

void PlainLoop::run() {
  const Spec &spec = inputs.spec;
  const auto in = [&](T name, T otherwise) { return floatsOf(*inputs.find(name, otherwise)); };
  const OperatorDef &def = definitionOf(spec.op);
  if (def.isAttention()) {
    const auto operand = [&](View view) {
      const Operand &found = *def.operandOf(view);
      return in(found.name, found.otherwise);
    };
    runAt(lanes, AttentionLoop{.q = operand(View::kQ),
                               .k = operand(View::kK),
                               .v = operand(View::kV),
                               .out = floatsOf(outputs.at(T::kOut)),
                               .weights = weights.data(),
                               .heads = spec.queryHeads,
                               .kvHeads = spec.kvHeads,
                               .qkDim = spec.qkDim,
                               .vDim = spec.vDim,
                               .scale = static_cast<float>(reference::softmaxScale(spec)),
                               .allowed = allowed});
  } else if (def.fields & kPhi) {
    for (const auto &[from, otherwise, to, dim] :
         {std::tuple(T::kKCmp, T::kK, T::kKComp, spec.qkDim), std::tuple(T::kVCmp, T::kV, T::kVComp, spec.vDim)})
      runAt(lanes, CompressLoop{.x = in(from, otherwise),
                                .out = floatsOf(outputs.at(to)),
                                .blocks = inputs.extents.blocks,
                                .block = spec.cmpBlock,
                                .stride = spec.cmpStride,
                                .row = int64_t{spec.kvHeads} * dim});
  } else {
    runAt(lanes, CombineLoop{.branches = {in(T::kOCmp, T::kOCmp), in(T::kOSel, T::kOSel), in(T::kOWin, T::kOWin)},
                             .gates = in(T::kGates, T::kGates),
                             .out = floatsOf(outputs.at(T::kOut)),
                             .rows = inputs.extents.timeQ * spec.queryHeads,
                             .dim = spec.vDim});
  }
}

} // namespace nsa::bench
