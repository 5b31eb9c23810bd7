// A language model over bytes: an embedding, kLayers blocks of attention and an MLP, and a projection to the logits of
// the next byte. float trains; double is for the test that compares the first steps with a reference.
// Ownership: must not outlive its attention. Thread-safety: one thread at a time.
#pragma once

#include "attention.h"
#include "layers.h"
#include "parameters.h"

#include <array>
#include <cstdint>
#include <vector>

namespace example {

// Sequences of the text: `bytes` [batch, kSequence], and the byte that follows each of them.
struct Batch {
  std::int64_t size = 0;
  std::vector<std::uint8_t> bytes, next;
};

template <typename Real> class Model {
public:
  explicit Model(Attention<Real> &attention) : attention(attention) {}

  // The mean loss in nats per byte.
  double loss(const std::vector<Real> &parameters, const Batch &batch) {
    prepare(batch.size);
    forward(parameters.data(), batch);
    return crossEntropy(logits.data(), batch.next.data(), rows, kBytes);
  }

  // The same, and the gradient of each parameter.
  double lossAndGradient(const std::vector<Real> &parameters, const Batch &batch, std::vector<Real> &gradient) {
    const double result = loss(parameters, batch);
    gradient.assign(parameters.size(), Real{0});
    backward(parameters.data(), batch, gradient.data());
    return result;
  }

  const Layout layout;

private:
  // What the backward pass reads of a layer's forward pass.
  struct Saved {
    std::vector<Real> in, normalised, projected, attended, middle, middleNormalised, hidden, squares;
  };

  void prepare(std::int64_t batch) {
    if (rows == batch * kSequence)
      return;
    rows = batch * kSequence;
    const auto make = [&](std::vector<Real> &values, std::int64_t columns) {
      values.assign(static_cast<std::size_t>(rows * columns), Real{0});
    };
    for (Saved &layer : saved) {
      for (std::vector<Real> *values : {&layer.in, &layer.normalised, &layer.middle, &layer.middleNormalised})
        make(*values, kWidth);
      make(layer.projected, column::kEnd);
      make(layer.attended, kQueryRow);
      make(layer.hidden, kHidden);
      make(layer.squares, kHidden);
    }
    for (std::vector<Real> *values : {&state, &finalNormalised, &dState, &dRow})
      make(*values, kWidth);
    make(logits, kBytes);
    make(dHidden, kHidden);
    make(dProjected, column::kEnd);
    make(dAttended, kQueryRow);
  }

  void forward(const Real *p, const Batch &batch) {
    for (std::int64_t row = 0; row < rows; ++row)
      std::copy_n(p + layout.embedding.begin + batch.bytes[static_cast<std::size_t>(row)] * kWidth, kWidth,
                  state.data() + row * kWidth);
    for (std::int64_t layer = 0; layer < kLayers; ++layer)
      forwardLayer(p, layer, batch.size);
    normalise(state.data(), p + layout.finalNorm.begin, finalNormalised.data(), rows, kWidth);
    project(finalNormalised.data(), p + layout.head.begin, logits.data(), rows, kWidth, kBytes);
  }

  void forwardLayer(const Real *p, std::int64_t layer, std::int64_t batch) {
    const LayerParts &parts = layout.layers[static_cast<std::size_t>(layer)];
    Saved &own = saved[static_cast<std::size_t>(layer)];
    own.in = state;
    normalise(own.in.data(), p + parts.attentionNorm.begin, own.normalised.data(), rows, kWidth);
    project(own.normalised.data(), p + parts.projection.begin, own.projected.data(), rows, kWidth, column::kEnd);
    attention.forward(layer, batch, own.projected.data(), own.attended.data());
    multiplyAdd<Real>(Matrix<const Real>(own.attended.data(), rows, kQueryRow),
                      Matrix<const Real>(p + parts.output.begin, kQueryRow, kWidth),
                      Matrix<Real>(state.data(), rows, kWidth));

    own.middle = state;
    normalise(own.middle.data(), p + parts.mlpNorm.begin, own.middleNormalised.data(), rows, kWidth);
    project(own.middleNormalised.data(), p + parts.up.begin, own.hidden.data(), rows, kWidth, kHidden);
    squareRelu(own.hidden.data(), own.squares.data(), rows * kHidden);
    multiplyAdd<Real>(Matrix<const Real>(own.squares.data(), rows, kHidden),
                      Matrix<const Real>(p + parts.down.begin, kHidden, kWidth),
                      Matrix<Real>(state.data(), rows, kWidth));
  }

  // Expects the gradient of the logits in `logits`, where crossEntropy leaves it.
  void backward(const Real *p, const Batch &batch, Real *gradient) {
    projectBackward(finalNormalised.data(), p + layout.head.begin, logits.data(), dRow.data(),
                    gradient + layout.head.begin, rows, kWidth, kBytes);
    std::fill(dState.begin(), dState.end(), Real{0});
    normaliseBackward(state.data(), p + layout.finalNorm.begin, dRow.data(), dState.data(),
                      gradient + layout.finalNorm.begin, rows, kWidth);
    for (std::int64_t layer = kLayers - 1; layer >= 0; --layer)
      backwardLayer(p, layer, batch.size, gradient);
    for (std::int64_t row = 0; row < rows; ++row)
      addRows(dState.data() + row * kWidth,
              gradient + layout.embedding.begin + batch.bytes[static_cast<std::size_t>(row)] * kWidth, kWidth);
  }

  // Turns dState from the gradient of what the layer gives into the gradient of what it gets.
  void backwardLayer(const Real *p, std::int64_t layer, std::int64_t batch, Real *gradient) {
    const LayerParts &parts = layout.layers[static_cast<std::size_t>(layer)];
    const Saved &own = saved[static_cast<std::size_t>(layer)];
    projectBackward(own.squares.data(), p + parts.down.begin, dState.data(), dHidden.data(),
                    gradient + parts.down.begin, rows, kHidden, kWidth);
    squareReluBackward(own.hidden.data(), dHidden.data(), rows * kHidden);
    projectBackward(own.middleNormalised.data(), p + parts.up.begin, dHidden.data(), dRow.data(),
                    gradient + parts.up.begin, rows, kWidth, kHidden);
    normaliseBackward(own.middle.data(), p + parts.mlpNorm.begin, dRow.data(), dState.data(),
                      gradient + parts.mlpNorm.begin, rows, kWidth);

    projectBackward(own.attended.data(), p + parts.output.begin, dState.data(), dAttended.data(),
                    gradient + parts.output.begin, rows, kQueryRow, kWidth);
    attention.backward(layer, batch, own.projected.data(), dAttended.data(), dProjected.data());
    projectBackward(own.normalised.data(), p + parts.projection.begin, dProjected.data(), dRow.data(),
                    gradient + parts.projection.begin, rows, kWidth, column::kEnd);
    normaliseBackward(own.in.data(), p + parts.attentionNorm.begin, dRow.data(), dState.data(),
                      gradient + parts.attentionNorm.begin, rows, kWidth);
  }

  Attention<Real> &attention;
  std::int64_t rows = 0;
  std::array<Saved, kLayers> saved;
  std::vector<Real> state, finalNormalised, logits;
  std::vector<Real> dState, dRow, dHidden, dProjected, dAttended; // gradients on their way back
};

} // namespace example
