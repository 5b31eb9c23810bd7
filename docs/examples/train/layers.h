// The parts of the model besides attention, each with its gradient. A part adds the gradients of weights to what their
// place holds. Rows are contiguous. Thread-safety: pure functions, which start their own threads.
#pragma once

#include "matrix.h"

#include <cmath>
#include <cstdint>
#include <vector>

namespace example {

// out [rows, to] = in [rows, from] times weights [from, to]
template <typename Real>
void project(const Real *in, const Real *weights, Real *out, std::int64_t rows, std::int64_t from, std::int64_t to) {
  std::fill(out, out + rows * to, Real{0});
  multiplyAdd<Real>(Matrix(in, rows, from), Matrix(weights, from, to), Matrix(out, rows, to));
}

// dIn = dOut times the transposed weights, and dWeights += the transposed input times dOut.
template <typename Real>
void projectBackward(const Real *in, const Real *weights, const Real *dOut, Real *dIn, Real *dWeights,
                     std::int64_t rows, std::int64_t from, std::int64_t to) {
  std::fill(dIn, dIn + rows * from, Real{0});
  multiplyAdd<Real>(Matrix(dOut, rows, to), Matrix(weights, from, to).transposed(), Matrix(dIn, rows, from));
  multiplyAdd<Real>(Matrix(in, rows, from).transposed(), Matrix(dOut, rows, to), Matrix(dWeights, from, to));
}

constexpr double kNormEpsilon = 1e-6;

// One over the root of the mean square of a row.
template <typename Real> Real inverseRms(const Real *row, std::int64_t columns) {
  Real squares = 0;
  for (std::int64_t i = 0; i < columns; ++i)
    squares += row[i] * row[i];
  return 1 / std::sqrt(squares / static_cast<Real>(columns) + static_cast<Real>(kNormEpsilon));
}

// Root mean square normalisation: each row gets the mean square 1, and each column its factor.
template <typename Real>
void normalise(const Real *in, const Real *factors, Real *out, std::int64_t rows, std::int64_t columns) {
  parallelFor(rows, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const Real *x = in + row * columns;
      const Real inverse = inverseRms(x, columns);
      for (std::int64_t i = 0; i < columns; ++i)
        out[row * columns + i] = x[i] * inverse * factors[i];
    }
  });
}

// Adds the gradient of `in` to dIn, because the residual stream around the normalised branch has a gradient too.
template <typename Real>
void normaliseBackward(const Real *in, const Real *factors, const Real *dOut, Real *dIn, Real *dFactors,
                       std::int64_t rows, std::int64_t columns) {
  std::vector<Real> inverses(static_cast<std::size_t>(rows));
  parallelFor(rows, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const Real *x = in + row * columns, *dY = dOut + row * columns;
      const Real inverse = inverses[static_cast<std::size_t>(row)] = inverseRms(x, columns);
      Real product = 0;
      for (std::int64_t i = 0; i < columns; ++i)
        product += x[i] * factors[i] * dY[i];
      const Real along = product * inverse * inverse * inverse / static_cast<Real>(columns);
      for (std::int64_t i = 0; i < columns; ++i)
        dIn[row * columns + i] += inverse * factors[i] * dY[i] - along * x[i];
    }
  });
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t i = 0; i < columns; ++i)
      dFactors[i] += in[row * columns + i] * inverses[static_cast<std::size_t>(row)] * dOut[row * columns + i];
}

// out = max(in, 0) squared: its gradient has no steps, so that rounding cannot turn a gradient on or off.
template <typename Real> void squareRelu(const Real *in, Real *out, std::int64_t count) {
  parallelFor(count, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Real positive = std::max(in[i], Real{0});
      out[i] = positive * positive;
    }
  });
}

// Turns the gradient of `out` into that of `in`.
template <typename Real> void squareReluBackward(const Real *in, Real *gradient, std::int64_t count) {
  parallelFor(count, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      gradient[i] *= 2 * std::max(in[i], Real{0});
  });
}

template <typename Real> void addRows(const Real *from, Real *to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    to[i] += from[i];
}

// Turns the logits [rows, columns] of the next byte into the gradient of the mean cross-entropy, and returns the mean
// cross-entropy in nats.
template <typename Real>
double crossEntropy(Real *logits, const std::uint8_t *next, std::int64_t rows, std::int64_t columns) {
  std::vector<double> losses(static_cast<std::size_t>(rows));
  parallelFor(rows, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      Real *x = logits + row * columns, largest = x[0], sum = 0;
      for (std::int64_t i = 1; i < columns; ++i)
        largest = std::max(largest, x[i]);
      const Real right = x[next[row]];
      for (std::int64_t i = 0; i < columns; ++i)
        sum += x[i] = std::exp(x[i] - largest);
      losses[static_cast<std::size_t>(row)] = std::log(sum) + largest - right;
      for (std::int64_t i = 0; i < columns; ++i)
        x[i] /= sum * static_cast<Real>(rows);
      x[next[row]] -= Real{1} / static_cast<Real>(rows);
    }
  });
  double sum = 0;
  for (double loss : losses)
    sum += loss;
  return sum / static_cast<double>(rows);
}

} // namespace example
