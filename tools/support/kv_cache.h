// Functions for the KV cache of the operator decode in host memory: they find the rows of the cache, add new tokens,
// and make a cache that contains the first tokens of given sequences.
// Ownership: views borrow.
// Thread-safety: kv_cache.h has only pure functions.
#pragma once

#include "tools/reference/sequence.h"
#include "tools/support/operator_job.h"

#include <cstdint>
#include <vector>

namespace nsa::tools {

// More pages in a pool than sequences have, so that some pages belong to no sequence.
inline constexpr int64_t kSparePages = 3;
// The numbers of a pool's pages in a random order.
std::vector<int32_t> drawPages(int64_t pages, uint64_t seed);

// Returns a view of the cache tensor `name` with the coordinates (sequence, token, kv head, column). For a tensor of
// compressed rows, the second coordinate is the number of a compressed block. For a ring buffer of the newest
// uncompressed tokens, the second coordinate is a row of the ring buffer. `table` is the tensor block_table if the
// cache is in pages. If `tensors` does not contain the tensor `name`, the view has no data.
reference::TensorView cacheView(const Spec &spec, TensorName name, const NamedTensors &tensors,
                                const HostTensor *table);

// Returns the sequences of a decode call with their lengths after the call. The queries are the new tokens, and the
// keys are all tokens in the cache, including the new tokens.
std::vector<reference::Sequence> sequencesInCache(const OperatorInputs &inputs);

// Copies the keys and values of new tokens from `tokens` to their rows in `cache`. Nothing is copied for a tensor that
// `cache` does not contain. appendTokens does not change the lengths and the compressed rows in `cache`.
void appendTokens(const Spec &spec, const NamedTensors &tokens, const Spec &tokensSpec,
                  const std::vector<reference::Sequence> &sequences, const HostTensor *table, NamedTensors &cache);

// Makes inputs of the operator decode from inputs of the operator nsa (`history`). The tokens of `history` that have
// queries become the new tokens of the call. All earlier tokens of `history` are in the cache, and the fp64 reference
// computes the compressed rows of the cache. The pages of the cache are in a random order, drawn from `seed`. In a
// cache with pages, each sequence has room for the tokens of the longest sequence, rounded up to whole pages, and for
// one page more. In a cache without pages, each sequence has room for the tokens of the longest sequence, rounded up to
// whole selection blocks, and for one selection block more. Cache memory that contains no token is NaN.
OperatorInputs cacheInputs(const OperatorInputs &history, int32_t pageSize, uint64_t seed);

} // namespace nsa::tools
