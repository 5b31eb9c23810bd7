// Decode's cache in host memory: where its rows are, how new tokens are added, and how a cache is made that holds the
// first part of a history.
// Ownership: views borrow.
// Thread-safety: kv_cache.h has only pure functions.
#pragma once

#include "tests/reference/sequence.h"
#include "tools/support/operator_job.h"

#include <cstdint>
#include <vector>

namespace nsa::tools {

// A view of a tensor of the cache with the coordinates (sequence, token, kv head, column). For some tensors the second
// coordinate is a compressed block or a row of the ring. `table` is the block_table of a cache in pages. The view of a
// tensor that `tensors` lack has no data.
reference::TensorView cacheView(const Spec &spec, TensorName name, const NamedTensors &tensors,
                                const HostTensor *table);

// Decode's sequences as they are after the call: the queries are the new tokens, and the keys are all tokens in the
// cache.
std::vector<reference::Sequence> sequencesInCache(const OperatorInputs &inputs);

// Copies the new tokens of the sequences, which are rows of `tokens`, to their places in `cache`: into pools and rings
// of decode's `spec`. A tensor that `cache` lacks is left out. Adding tokens leaves lengths and compressed blocks as
// they are.
void appendTokens(const Spec &spec, const NamedTensors &tokens, const Spec &tokensSpec,
                  const std::vector<reference::Sequence> &sequences, const HostTensor *table, NamedTensors &cache);

// Makes inputs of decode from inputs of nsa: the tokens of its queries are new, and the remaining tokens are in the
// cache, compressed by the reference. Pages of the cache are in an order drawn from the seed. The cache has room for
// one more page, or without pages for one more selection block. Memory of the cache to which no token was written is
// NaN.
OperatorInputs cacheInputs(const OperatorInputs &history, int32_t pageSize, uint64_t seed);

} // namespace nsa::tools
