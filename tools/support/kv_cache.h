// The cache of decode in host memory: functions that find its rows, that add new tokens, and that make a cache with the
// first part of a history.
// Ownership: views borrow.
// Thread-safety: kv_cache.h has only pure functions.
#pragma once

#include "tests/reference/sequence.h"
#include "tools/support/operator_job.h"

#include <cstdint>
#include <vector>

namespace nsa::tools {

// A view of a tensor of the cache with the coordinates (sequence, token, kv head, column). In a tensor of compressed
// rows the second coordinate of the view is a compressed block, and in a ring it is a row of the ring. `table` is the
// tensor block_table if the cache is in pages. If `tensors` does not contain the tensor, the view has no data.
reference::TensorView cacheView(const Spec &spec, TensorName name, const NamedTensors &tensors,
                                const HostTensor *table);

// Decode's sequences as they are after the call: the queries are the new tokens, and the keys are all tokens in the
// cache.
std::vector<reference::Sequence> sequencesInCache(const OperatorInputs &inputs);

// Copies the new tokens of the sequences, which are rows of `tokens`, to the rows of `cache` that belong to them, in
// the pools and rings of decode's `spec`. Nothing is copied for a tensor that `cache` does not contain. Adding tokens
// does not change the lengths and the compressed blocks of the cache.
void appendTokens(const Spec &spec, const NamedTensors &tokens, const Spec &tokensSpec,
                  const std::vector<reference::Sequence> &sequences, const HostTensor *table, NamedTensors &cache);

// Makes inputs of decode from inputs of nsa: the tokens of its queries are new, and the remaining tokens are in the
// cache, compressed by the reference. The pages of the cache are in a random order that follows from the seed. The
// cache has memory for one page more than its tokens need, or, without pages, for one selection block more. Memory of
// the cache to which no token was written is NaN.
OperatorInputs cacheInputs(const OperatorInputs &history, int32_t pageSize, uint64_t seed);

} // namespace nsa::tools
