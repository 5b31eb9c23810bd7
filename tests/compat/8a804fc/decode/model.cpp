#include "model.h"

#include "bf16.h"
#include "geometry.h"

#include <cmath>
#include <random>

namespace example {
namespace {

constexpr std::size_t kState = 64;

// Uniform with variance 1: the distributions of the standard library differ from one to the other, this does not.
float draw(std::mt19937 &random) {
  const float unit = static_cast<float>(random()) / 4294967296.0f;
  return (2 * unit - 1) * 1.7320508f;
}

std::vector<float> drawMatrix(std::mt19937 &random, std::size_t rows, std::size_t columns) {
  std::vector<float> matrix(rows * columns);
  const float scale = 1 / std::sqrt(static_cast<float>(columns));
  for (float &value : matrix)
    value = draw(random) * scale;
  return matrix;
}

std::vector<float> multiply(const std::vector<float> &matrix, const std::vector<float> &vector) {
  std::vector<float> result(matrix.size() / vector.size());
  for (std::size_t row = 0; row < result.size(); ++row)
    for (std::size_t column = 0; column < vector.size(); ++column)
      result[row] += matrix[row * vector.size() + column] * vector[column];
  return result;
}

void appendBf16(std::vector<std::uint16_t> &rows, const std::vector<float> &values) {
  for (float value : values)
    rows.push_back(toBf16(value));
}

} // namespace

Model::Model() {
  std::mt19937 random(2502); // NOLINT(bugprone-random-generator-seed): the same model in every run
  queries = drawMatrix(random, kQueryRow, kState);
  keys = drawMatrix(random, kKeyRow, kState);
  values = drawMatrix(random, kKeyRow, kState);
  gates = drawMatrix(random, kGateRow, kState);
  outputs = drawMatrix(random, kState, kQueryRow);
}

std::vector<float> Model::embed(std::int64_t sequence, std::int64_t position) const {
  std::mt19937 random(static_cast<std::uint32_t>(sequence * 1000003 + position));
  random.discard(8); // seeds that are close begin alike
  std::vector<float> state(kState);
  for (float &value : state)
    value = draw(random);
  return state;
}

std::vector<float> Model::next(const std::uint16_t *output, std::int64_t sequence, std::int64_t position) const {
  std::vector<float> row(kQueryRow);
  for (std::size_t i = 0; i < row.size(); ++i)
    row[i] = fromBf16(output[i]);
  std::vector<float> state = multiply(outputs, row);
  float squares = 0;
  for (float value : state)
    squares += value * value;
  const float scale = 1 / std::sqrt(squares / static_cast<float>(kState) + 1e-6f);
  // What is sampled beside the output keeps a model without training from saying the same for ever.
  const std::vector<float> sampled = embed(sequence, position);
  for (std::size_t i = 0; i < state.size(); ++i)
    state[i] = 0.8f * state[i] * scale + 0.6f * sampled[i];
  return state;
}

void Model::project(const std::vector<float> &state, History &history) const {
  appendBf16(history.q, multiply(queries, state));
  appendBf16(history.k, multiply(keys, state));
  appendBf16(history.v, multiply(values, state));
  appendBf16(history.gates, multiply(gates, state));
}

} // namespace example
