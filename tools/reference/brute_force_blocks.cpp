#include "tools/reference/brute_force.h"

#include "tools/reference/elements.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

namespace nsa::reference {
namespace {

using Row = std::vector<long double>;

// Blocks whose tokens all exist, counted one by one.
int64_t countBlocks(const Spec &spec, int64_t tokens) {
  int64_t count = 0;
  for (int64_t end = spec.cmpBlock; end <= tokens; end += spec.cmpStride)
    ++count;
  return count;
}

bool isInCompressedBlock(const Spec &spec, int64_t token, int64_t block) {
  return token >= block * spec.cmpStride && token < block * spec.cmpStride + spec.cmpBlock;
}

// The io type's number nearest to a value, by trying its neighbours; of two that are as near, the even one.
double nearest(DType dtype, long double value) {
  std::byte bytes[4] = {};
  storeElement(dtype, bytes, 0, static_cast<double>(value));
  if (!std::isfinite(loadElement(dtype, bytes, 0)))
    return loadElement(dtype, bytes, 0);
  uint32_t around = 0;
  std::memcpy(&around, bytes, static_cast<size_t>(dtypeBytes(dtype)));
  double best = loadElement(dtype, bytes, 0);
  long double bestDistance = std::fabs(best - value);
  for (const int step : {-1, 1}) {
    const uint32_t bits = around + static_cast<uint32_t>(step);
    std::memcpy(bytes, &bits, static_cast<size_t>(dtypeBytes(dtype)));
    const double candidate = loadElement(dtype, bytes, 0);
    const long double distance = std::fabs(candidate - value);
    if (distance < bestDistance || (distance == bestDistance && bits % 2 == 0)) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

long double valueOr(const TensorView &view, int64_t time, int64_t head, int64_t column) {
  return view.isGiven() ? view.at(0, time, head, column) : 0;
}

// The contract's formulas, one element of the output at a time.
long double phiElement(const Spec &spec, const Phi &phi, int64_t columns, int64_t column,
                       const std::function<long double(int64_t, int64_t)> &x) {
  long double result = 0;
  if (spec.cmpKind == CmpKind::kMean) {
    for (int64_t i = 0; i < spec.cmpBlock; ++i)
      result += x(i, column);
    return result / spec.cmpBlock;
  }
  if (spec.cmpKind == CmpKind::kLinear) {
    for (int64_t i = 0; i < spec.cmpBlock; ++i)
      for (int64_t in = 0; in < columns; ++in)
        result += (x(i, in) + valueOr(phi.pe, i, 0, in)) * phi.w.at(0, i, in, column);
    return result + valueOr(phi.b, 0, 0, column);
  }
  for (int64_t hidden = 0; hidden < spec.mlpHidden; ++hidden) {
    long double sum = valueOr(phi.b1, 0, 0, hidden);
    for (int64_t i = 0; i < spec.cmpBlock; ++i)
      for (int64_t in = 0; in < columns; ++in)
        sum += (x(i, in) + valueOr(phi.pe, i, 0, in)) * phi.w1.at(0, i, in, hidden);
    if (spec.mlpActivation == Activation::kRelu)
      sum = std::fmax(sum, 0.0L);
    else if (spec.mlpActivation == Activation::kGelu)
      sum *= std::erfc(-sum * std::sqrt(0.5L)) / 2; // the normal distribution's integral up to it
    else
      sum *= (std::tanh(sum / 2) + 1) / 2; // the logistic function
    result += sum * phi.w2.at(0, hidden, 0, column);
  }
  return result + valueOr(phi.b2, 0, 0, column);
}

OwnedTensor compressTensor(const Compression &c, const TensorView &raw, const Phi &phi, int64_t columns) {
  // Rows of a batch one behind the other; each batch of a dense tensor has as many as the others.
  int64_t batches = 0, times = 0;
  for (const Sequence &sequence : c.sequences) {
    batches = std::max(batches, sequence.keyBatch + 1);
    times = std::max(times, sequence.blockBegin + countBlocks(c.spec, sequence.keys));
  }
  OwnedTensor result = OwnedTensor::make(c.spec.dtype, batches, times, c.spec.kvHeads, columns);
  for (const Sequence &sequence : c.sequences) {
    for (int64_t block = 0; block < countBlocks(c.spec, sequence.keys); ++block) {
      std::vector<int64_t> members;
      for (int64_t token = 0; token < sequence.keys; ++token)
        if (isInCompressedBlock(c.spec, token, block))
          members.push_back(token);
      for (int64_t head = 0; head < c.spec.kvHeads; ++head) {
        auto x = [&](int64_t i, int64_t column) -> long double {
          return raw.at(sequence.keyBatch, sequence.keyBegin + members.at(static_cast<size_t>(i)), head, column);
        };
        for (int64_t column = 0; column < columns; ++column) {
          const int64_t row = sequence.keyBatch * times + sequence.blockBegin + block;
          storeElement(c.spec.dtype, result.bytes.data(), (row * c.spec.kvHeads + head) * columns + column,
                       nearest(c.spec.dtype, phiElement(c.spec, phi, columns, column, x)));
        }
      }
    }
  }
  return result;
}

} // namespace

Compressed compressByMask(const Compression &c) {
  return {.k = compressTensor(c, c.k, c.phiK, c.spec.qkDim), .v = compressTensor(c, c.v, c.phiV, c.spec.vDim)};
}

std::vector<std::vector<double>> blockScoresByMask(const Selection &s, int64_t kvHead) {
  const Spec &spec = s.spec;
  int64_t blocks = 0; // selection blocks of the longest sequence
  for (const Sequence &sequence : s.sequences)
    while (blocks * spec.selBlock < sequence.keys)
      ++blocks;
  std::vector<std::vector<double>> scores;
  for (const Sequence &sequence : s.sequences) {
    const int64_t compressed = countBlocks(spec, sequence.keys);
    for (int64_t query = 0; query < sequence.queries; ++query) {
      Row p(compressed, 0.0L);
      for (int64_t head = 0; head < spec.queryHeads; ++head) {
        if (head * spec.kvHeads / spec.queryHeads != kvHead)
          continue;
        Row weights(compressed, 0.0L);
        long double sum = 0;
        for (int64_t c = 0; c < compressed; ++c) {
          const int64_t lastToken = c * spec.cmpStride + spec.cmpBlock - 1;
          if (sequence.keys - lastToken < sequence.queries - query)
            continue; // more queries than tokens behind it: it ends after this query
          long double score = 0;
          for (int64_t i = 0; i < spec.qkDim; ++i)
            score += static_cast<long double>(s.q.at(sequence.batch, sequence.queryBegin + query, head, i)) *
                     s.kComp.at(sequence.keyBatch, sequence.blockBegin + c, kvHead, i);
          weights[c] =
              std::exp(score * (spec.scale != 0 ? spec.scale : std::pow(static_cast<double>(spec.qkDim), -0.5)));
          sum += weights[c];
        }
        for (int64_t c = 0; c < compressed; ++c)
          p[c] += weights[c] == 0 ? 0 : weights[c] / sum;
      }
      std::vector<double> row(blocks, 0.0);
      for (int64_t j = 0; j < blocks; ++j) {
        long double score = 0;
        for (int64_t c = 0; c < compressed; ++c) {
          int64_t shared = 0;
          for (int64_t token = 0; token < sequence.keys; ++token)
            shared += isInCompressedBlock(spec, token, c) && token / spec.selBlock == j;
          score += static_cast<long double>(shared) / spec.cmpStride * p[c];
        }
        row[j] = static_cast<double>(score);
      }
      scores.push_back(row);
    }
  }
  return scores;
}

BlockLists selectByMask(const Selection &s) {
  const Spec &spec = s.spec;
  int64_t rows = 0;
  for (const Sequence &sequence : s.sequences)
    rows += sequence.queries;
  BlockLists lists{.kvHeads = spec.kvHeads, .slots = spec.selCount};
  lists.blocks.assign(rows * spec.kvHeads * spec.selCount, -1);
  for (int64_t kvHead = 0; kvHead < spec.kvHeads; ++kvHead) {
    const std::vector<std::vector<double>> scores = blockScoresByMask(s, kvHead);
    int64_t row = 0;
    for (const Sequence &sequence : s.sequences) {
      for (int64_t query = 0; query < sequence.queries; ++query, ++row) {
        const int64_t tokens = sequence.keys - (sequence.queries - 1 - query); // up to this query
        // The blocks that it may choose, the newest last.
        std::vector<bool> chosen((tokens + spec.selBlock - 1) / spec.selBlock, false);
        const int64_t blocks = static_cast<int64_t>(chosen.size());
        for (int64_t j = 0; j < blocks; ++j)
          chosen[j] = j < spec.initBlocks || blocks - j <= spec.localBlocks;
        auto count = [&] { return std::count(chosen.begin(), chosen.end(), true); };
        while (count() < std::min<int64_t>(spec.selCount, blocks)) {
          int64_t best = -1;
          for (int64_t j = 0; j < blocks; ++j) {
            if (chosen[j])
              continue;
            const double score = scores[row][j];
            // Going upwards, only what is truly better replaces the lower block.
            if (best < 0 || score > scores[row][best] || (std::isnan(scores[row][best]) && !std::isnan(score)))
              best = j;
          }
          chosen[best] = true;
        }
        int64_t slot = (row * spec.kvHeads + kvHead) * spec.selCount;
        for (int64_t j = 0; j < blocks; ++j)
          if (chosen[j])
            lists.blocks[slot++] = static_cast<int32_t>(j);
      }
    }
  }
  return lists;
}

} // namespace nsa::reference
