// Stands for everything around the attention layer: a made-up model whose weights come from a seed. A token's state
// becomes queries, keys, values and gates; the layer's output becomes the next token's state. Thread-safety: constant.
#pragma once

#include "history.h"

#include <cstdint>
#include <vector>

namespace example {

class Model {
public:
  Model();

  // The state of a prompt's token.
  std::vector<float> embed(std::int64_t sequence, std::int64_t position) const;
  // The state of the token at `position`, from the output of the layer for the one before: kQueryRow numbers of bf16.
  std::vector<float> next(const std::uint16_t *output, std::int64_t sequence, std::int64_t position) const;
  // Appends the layer's inputs for a token of this state.
  void project(const std::vector<float> &state, History &history) const;

private:
  std::vector<float> queries, keys, values, gates; // [row, state]
  std::vector<float> outputs;                      // [state, row]
};

} // namespace example
