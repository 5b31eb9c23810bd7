#include "tools/reference/compression.h"

#include "tools/reference/elements.h"
#include "tools/reference/parallel.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>

namespace nsa::reference {
namespace {

double activate(Activation activation, double x) {
  switch (activation) {
  case Activation::kRelu:
    return x < 0 ? 0 : x; // a NaN stays one
  case Activation::kGelu:
    return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
  case Activation::kSilu:
    return x / (1 + std::exp(-x));
  }
  assert(false && "unknown activation");
  return x;
}

double slope(Activation activation, double x) {
  switch (activation) {
  case Activation::kRelu:
    return x > 0 ? 1 : 0;
  case Activation::kGelu:
    return 0.5 * (1 + std::erf(x / std::numbers::sqrt2)) +
           x * std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  case Activation::kSilu: {
    const double sigmoid = 1 / (1 + std::exp(-x));
    return sigmoid * (1 + x * (1 - sigmoid));
  }
  }
  assert(false && "unknown activation");
  return 0;
}

} // namespace

PhiFunction::Matrix PhiFunction::readMatrix(const TensorView &weights, const TensorView &bias, int64_t outer,
                                            int64_t inner, int64_t columns) {
  Matrix matrix{.rows = outer * inner, .columns = columns, .weights = {}, .bias = {}};
  for (int64_t i = 0; i < outer; ++i)
    for (int64_t row = 0; row < inner; ++row)
      for (int64_t c = 0; c < columns; ++c)
        matrix.weights.push_back(weights.at(0, i, row, c));
  for (int64_t c = 0; c < columns; ++c)
    matrix.bias.push_back(bias.isGiven() ? bias.at(0, 0, 0, c) : 0);
  return matrix;
}

std::vector<double> PhiFunction::Matrix::multiply(std::span<const double> row) const {
  std::vector<double> result(bias.size(), 0.0);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      result[c] += row[r] * weights[r * columns + c];
  for (int64_t c = 0; c < columns; ++c)
    result[c] += bias[c];
  return result;
}

std::vector<double> PhiFunction::Matrix::differentiate(std::span<const double> row, std::span<const double> dResult,
                                                       std::vector<double> &dWeights,
                                                       std::vector<double> &dBias) const {
  std::vector<double> dRow(static_cast<size_t>(rows), 0.0);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      dRow[r] += dResult[c] * weights[r * columns + c];
      dWeights[r * columns + c] += row[r] * dResult[c];
    }
  for (int64_t c = 0; c < columns; ++c)
    dBias[c] += dResult[c];
  return dRow;
}

PhiFunction::PhiFunction(const Spec &spec, const Phi &phi, int64_t columns)
    : kind(spec.cmpKind), activation(spec.mlpActivation), block(spec.cmpBlock), columns(columns) {
  if (kind == CmpKind::kMean)
    return;
  pe.assign(block * columns, 0.0);
  for (int64_t i = 0; i < block && phi.pe.isGiven(); ++i)
    for (int64_t c = 0; c < columns; ++c)
      pe[i * columns + c] = phi.pe.at(0, i, 0, c);
  if (kind == CmpKind::kLinear) {
    first = readMatrix(phi.w, phi.b, block, columns, columns);
  } else {
    first = readMatrix(phi.w1, phi.b1, block, columns, spec.mlpHidden);
    second = readMatrix(phi.w2, phi.b2, spec.mlpHidden, 1, columns);
  }
}

std::vector<double> PhiFunction::operator()(std::span<const double> tokens) const {
  assert(static_cast<int64_t>(tokens.size()) == block * columns);
  if (kind == CmpKind::kMean) {
    std::vector<double> mean(columns, 0.0);
    for (int64_t i = 0; i < block; ++i)
      for (int64_t c = 0; c < columns; ++c)
        mean[c] += tokens[i * columns + c];
    for (double &value : mean)
      value /= static_cast<double>(block);
    return mean;
  }
  std::vector<double> result = first.multiply(embedded(tokens));
  if (kind == CmpKind::kLinear)
    return result;
  for (double &value : result)
    value = activate(activation, value);
  return second.multiply(result);
}

// The l tokens side by side are one row, and W's first two dimensions are that row's.
std::vector<double> PhiFunction::embedded(std::span<const double> tokens) const {
  std::vector<double> row(tokens.begin(), tokens.end());
  for (size_t i = 0; i < row.size(); ++i)
    row[i] += pe[i];
  return row;
}

PhiGradient PhiFunction::zeroGradient() const {
  return {.pe = std::vector<double>(pe.size()),
          .w = std::vector<double>(first.weights.size()),
          .b = std::vector<double>(first.bias.size()),
          .w2 = std::vector<double>(second.weights.size()),
          .b2 = std::vector<double>(second.bias.size())};
}

std::vector<double> PhiFunction::differentiate(std::span<const double> tokens, std::span<const double> dRow,
                                               PhiGradient &sums) const {
  std::vector<double> dTokens;
  if (kind == CmpKind::kMean) {
    for (int64_t i = 0; i < block * columns; ++i)
      dTokens.push_back(dRow[i % columns] / static_cast<double>(block));
    return dTokens;
  }
  const std::vector<double> row = embedded(tokens);
  std::vector<double> dResult(dRow.begin(), dRow.end());
  if (kind == CmpKind::kMlp) {
    const std::vector<double> hidden = first.multiply(row);
    std::vector<double> active;
    for (const double value : hidden)
      active.push_back(activate(activation, value));
    dResult = second.differentiate(active, dRow, sums.w2, sums.b2);
    for (size_t i = 0; i < hidden.size(); ++i)
      dResult[i] *= slope(activation, hidden[i]);
  }
  dTokens = first.differentiate(row, dResult, sums.w, sums.b);
  for (size_t i = 0; i < pe.size(); ++i)
    sums.pe[i] += dTokens[i];
  return dTokens;
}

// fp32 rounds each partial sum to 2^-24 of its size, and tensor cores may truncate it. Where the errors have any sign,
// or few sums are truncated, they stay below 2^-20 times the sum of magnitudes. Tokens and embeddings may be added
// apart.
void PhiFunction::findNearKink(std::span<const double> tokens, std::set<int64_t> &hidden) const {
  if (kind != CmpKind::kMlp || activation != Activation::kRelu)
    return;
  const std::vector<double> sums = first.multiply(embedded(tokens));
  std::vector<double> magnitudes(sums.size(), 0.0);
  for (int64_t r = 0; r < first.rows; ++r)
    for (int64_t c = 0; c < first.columns; ++c)
      magnitudes[c] += (std::abs(tokens[r]) + std::abs(pe[r])) * std::abs(first.weights[r * first.columns + c]);
  for (int64_t c = 0; c < first.columns; ++c)
    if (std::abs(sums[c]) < 0x1p-20 * (magnitudes[c] + std::abs(first.bias[c])))
      hidden.insert(c);
}

namespace {

OwnedTensor compressOne(const Compression &c, const TensorView &raw, const Phi &phi, int64_t columns, int threads) {
  if (!raw.isGiven())
    return {};
  int64_t batches = 0, times = 0;
  for (const Sequence &sequence : c.sequences) {
    batches = std::max(batches, sequence.keyBatch + 1);
    times = std::max(times, sequence.blockBegin + c.spec.compressedBlocks(sequence.keys));
  }
  OwnedTensor result = OwnedTensor::make(c.spec.dtype, batches, times, c.spec.kvHeads, columns);
  const TensorView rows = result.view();
  const PhiFunction function(c.spec, phi, columns);
  for (const Sequence &sequence : c.sequences) {
    forEachIndex(c.spec.compressedBlocks(sequence.keys), threads, 4, [&](int64_t block) {
      for (int64_t kvHead = 0; kvHead < c.spec.kvHeads; ++kvHead) {
        std::vector<double> tokens(static_cast<size_t>(c.spec.cmpBlock * columns));
        for (int64_t i = 0; i < c.spec.cmpBlock; ++i)
          raw.read(sequence.keyBatch, sequence.keyBegin + block * c.spec.cmpStride + i, kvHead,
                   std::span(tokens).subspan(i * columns, columns));
        const std::vector<double> row = function(tokens);
        const int64_t first = rows.offset(sequence.keyBatch, sequence.blockBegin + block, kvHead, 0);
        for (int64_t column = 0; column < columns; ++column)
          storeElement(c.spec.dtype, result.bytes.data(), first + column, row[column]);
      }
    });
  }
  return result;
}

} // namespace

Compressed compress(const Compression &c, int threads) {
  return {.k = compressOne(c, c.k, c.phiK, c.spec.qkDim, threads),
          .v = compressOne(c, c.v, c.phiV, c.spec.vDim, threads)};
}

} // namespace nsa::reference
