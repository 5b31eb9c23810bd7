// Decode's cache in host memory: where its rows lie, how it grows by new tokens, and one that holds what a history has
// in front of them.
// Ownership: views borrow. Thread-safety: pure functions.
#pragma once

#include "tests/reference/sequence.h"
#include "tools/support/operator_job.h"

#include <cstdint>
#include <vector>

namespace nsa::tools {

// A tensor of a cache by (sequence, token, kv head, column), compressed blocks and rows of a ring in place of tokens.
// `table`: block_table, of a cache in pages. Not given where `tensors` lack it.
reference::TensorView cacheView(const Spec &spec, TensorName name, const NamedTensors &tensors,
                                const HostTensor *table);

// Decode's sequences as they are after the call: queries are the new tokens, keys all in the cache.
std::vector<reference::Sequence> sequencesInCache(const OperatorInputs &inputs);

// Copies the queries of the sequences, which are rows of `tokens`, to their places in `cache`, pools and rings of
// decode's `spec`; what has no tensor there is left out. Lengths and compressed blocks stay as they are.
void appendTokens(const Spec &spec, const NamedTensors &tokens, const Spec &tokensSpec,
                  const std::vector<reference::Sequence> &sequences, const HostTensor *table, NamedTensors &cache);

// From inputs of nsa those of decode: its queries' tokens are the new ones, the others are in the cache, compressed by
// the reference. Pages in an order drawn from the seed; room for a page more, without pages for a selection block more.
// What no token was written to is NaN.
OperatorInputs cacheInputs(const OperatorInputs &history, int32_t pageSize, uint64_t seed);

} // namespace nsa::tools
