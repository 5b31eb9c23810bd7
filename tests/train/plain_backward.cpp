// Stands for docs/examples/train/nsa_backward.cpp, which needs the operator nsa_bwd, until the library has it.
#include "docs/examples/train/nsa_attention.h"
#include "tests/train/plain_attention.h"

namespace example {

void NsaAttention::planBackward() {}

void NsaAttention::backward(std::int64_t layer, std::int64_t batch, const float *projected, const float *dOut,
                            float *dProjected) {
  PlainAttention<float> plain(
      [this](std::int64_t each) -> const std::vector<std::int32_t> & { return blockList(each); }, selectedGradient);
  plain.backward(layer, batch, projected, dOut, dProjected);
}

} // namespace example
