// The layer's inputs and outputs for all tokens of a sequence, rows of bf16 one after the other, on the host: a model
// would keep none of it. The example compares it with one forward pass at the end. Thread-safety: a value.
#pragma once

#include "device.h"
#include "geometry.h"

#include <cstdint>
#include <vector>

namespace example {

struct History {
  std::vector<std::uint16_t> q, k, v, gates; // known up to the newest token
  std::vector<std::uint16_t> out;            // of the tokens that went through the layer
  std::vector<std::int32_t> reads, lists;    // of these too: what was attended, and the selected blocks

  std::int64_t tokens() const { return static_cast<std::int64_t>(q.size() / kQueryRow); }
  std::int64_t done() const { return static_cast<std::int64_t>(out.size() / kQueryRow); }
};

// The tensors of tokens that go through the layer together, packed: sequence after sequence.
class TokenBuffers {
public:
  TokenBuffers(Device &device, std::int64_t mostTokens);

  // Rows [firsts[s], firsts[s] + counts[s]) of each sequence s.
  void upload(const std::vector<History> &histories, const std::vector<std::int64_t> &firsts,
              const std::vector<std::int64_t> &counts);
  // The outputs of these, behind those that each history has.
  void download(std::vector<History> &histories, const std::vector<std::int64_t> &counts) const;

  // Views of `tokens` rows. Q, K, V and GATES stand for all branches.
  std::vector<NamedTensor> tensors(std::int64_t tokens) const;

private:
  Device *device;
  Buffer q, k, v, gates, out, reads, lists, offsets;
};

} // namespace example
