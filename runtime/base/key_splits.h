// How the work of kernels is divided. Decode: how many programs share the keys of one query in each branch
// (Flash-Decoding), because a few queries with one program each do not fill a device; these programs are called splits.
// Queries: the memory and the steps of a chunk. Gradients: which way computes the gradient of the queries of `sel`, and
// how many programs share sums, inverted lists and slots. All numbers depend only on values in the problem key, so all
// plans with the same stored choice divide the work alike.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/problem.h"

#include <array>
#include <cstdint>

namespace nsa {

// Returns whether several programs share the keys of one query, as they do in a plan of decode with at most 8 queries
// in each sequence, and in each plan with batch_invariant.
bool sharesKeys(const Spec &spec, const Maxima &maxima);
// Returns whether four programs for each pair of a query and a kv head would be at least 512 programs, which fill a
// large GPU. The function counts the queries of all sequences.
bool hasManyQueries(const Spec &spec, const Maxima &maxima);
// Returns whether four programs for each tile of 128 rows would be at least 512 programs, which fill a large GPU. A row
// is a pair of a query and a query head. The function counts the rows of all sequences.
bool hasManyRows(const Spec &spec, const Maxima &maxima);

// The most new tokens of a sequence that the kernel `decode_step` serves.
inline constexpr int32_t kStepTokens = 8;
// Returns how many new tokens of a sequence `decode_step` serves with a spec. They complete one compressed block at
// most.
int32_t stepTokens(const Spec &spec);
// Returns how many new tokens of all kv heads a step of decode has, at most 1024. The numbers of sequences, tokens and
// heads are rounded up to powers of two. The kernel `decode_step` is compiled for this number of clusters.
int64_t stepPairs(const Spec &spec, const Maxima &maxima);

// Returns how many selection blocks make one segment of a query's keys. The number of blocks of a segment is 0, or a
// power of two that is at least 128. The kernel `rank` keeps the blocks with the best scores of each segment, and the
// kernel `choose` compares the kept blocks. The result 0 means that `rank` is not launched. `choose` then compares all
// blocks with each other, because this costs less than the launch of `rank`. For sel_count above 64 the result is also
// 0 where one segment would hold all blocks. The list does not depend on the segment.
int64_t rankSegment(const Spec &spec, const Maxima &maxima);
// Returns how many blocks of each segment the kernel `rank` keeps: at least sel_count, the length of a block list.
int64_t keptOfSegment(const Spec &spec);

// How many programs share what is summed. `own` and `cmp` programs share the queries that see a tile of keys: as many
// as make 2048 programs with tiles of 64 keys, but at most 16, and not more than there are tiles of 64 pairs of a query
// and a query head of a group. `weights` is weightParts. The numbers depend on buckets alone.
struct GradientParts {
  int64_t own = 1;     // of the keys that the operator attends; of nsa_bwd the tokens
  int64_t cmp = 1;     // of the compressed keys of nsa_bwd
  int64_t weights = 1; // of compression

  static GradientParts make(const Spec &spec, const Maxima &maxima);
  // Returns how many parts the gradients of up to `keys` keys of each sequence have.
  static int64_t ofKeys(const Spec &spec, const Maxima &maxima, int64_t keys);
};

// Queries go through kernels in chunks (runtime/engine/graph/workspace.h), and a chunk of a packed batch begins and
// ends inside of sequences. Kernels round what it has of a sequence up to a multiple of so many of the sequence's
// queries, so that tiles of rows are the same in any batch. Tiles have at most 128 rows, and those of
// templates/cuda/sm90/attention.cu 128, 192 or 384.
inline constexpr int64_t kGpuChunkStep = 384;
inline constexpr int64_t kCpuChunkStep = 128;
// Returns how many queries more than it counts a chunk may have.
constexpr int64_t spareQueries(const Spec &spec, bool isGpu) {
  return spec.layout != Layout::kPacked ? 0 : isGpu ? kGpuChunkStep : kCpuChunkStep;
}

// Bytes of what a chunk of queries has in the workspace: outputs of branches, lists, and sums of gradients. It is
// enough to fill a GPU many times.
inline constexpr int64_t kGpuChunkBytes = int64_t{512} << 20, kCpuChunkBytes = int64_t{32} << 20;
// The same on a GPU if the chunk has slots of gradients, which take most of it. In each chunk all blocks of keys are
// loaded again, and fewer queries list a block than a tile has rows if the chunk is small.
inline constexpr int64_t kGpuSlotsBytes = int64_t{2} << 30;
// Queries of the smallest chunk, and of the steps in which a chunk grows.
inline constexpr int64_t kChunkGranule = 64;
// Returns whether the gradient of the queries of `sel` may be computed block by block: the keys and values of a block
// and 16 rows fit in the shared memory of all GPUs, and the slots of the smallest chunk of each entry, and of the spare
// queries of a packed batch, fit in `kGpuSlotsBytes`. The result depends on buckets alone.
bool mayTakeSlots(const Spec &spec, const Maxima &maxima);
// Returns whether the rule computes the gradient of the queries of `sel` block by block, where nothing was measured.
// Slots must be allowed, and the group must be small: its heads do not fill a tile of 16 rows, which `sel_dq` has for
// each query on a GPU.
bool takesSlots(const Spec &spec, const Maxima &maxima);

// Returns how many places an entry of an inverse of lists (`block_index`) has for one kv head.
int64_t indexPlaces(const Spec &spec, const Maxima &maxima);
// Returns how many entries of an inverse of lists (`block_index`) make an item of `sel_dkv`: a power of two from 64 to
// 1024, the largest one with which the lists of all sequences and kv heads make 1024 items, if there is one. The number
// depends on buckets alone.
int64_t itemQueries(const Spec &spec, const Maxima &maxima);
// Returns how many entries make an item of `sel_dq_slots`, where an item of `sel_dkv` has `item` entries: the largest
// power of two with which an item has at most 1024 pairs of a query and a head, but at least 64 and at most `item`.
// With longer items a block that all queries list would keep one program busy after all others have ended.
int64_t slotQueries(const Spec &spec, int64_t item);
// Returns how many pieces the blocks of a sequence have at most, where an item has `item` entries.
int64_t piecesOfSequence(const Spec &spec, int64_t item, int64_t queries, int64_t keys);
// Returns how many pieces all sequences have together, with those that are left free between two sequences
// (templates/tile/library/pieces_bwd.tile).
int64_t piecesOfAll(const Spec &spec, const Maxima &maxima);

// Returns how many programs share the queries of a sequence and a kv head, where lists are inverted: as many as make
// 2048 programs, but at most 128, each with at least 128 queries. The number depends on buckets alone. It is 1 for a
// spec without selection blocks.
int64_t indexParts(const Spec &spec, const Maxima &maxima);

// Returns how many programs share the compressed blocks, where the gradients of compression's weights are computed: as
// many as make 512 programs with tiles of 64 x 64 weights, but at most 16, and not more than there are tiles of 64
// pairs of a block and a head. The number depends on buckets alone.
int64_t weightParts(const Spec &spec, const Maxima &maxima);

struct KeySplits {
  static constexpr int64_t kMost = 16; // splits of one branch
  std::array<int64_t, 3> counts = {};  // splits of cmp, sel, win; 0 where a branch has no kernel

  // Computes the number of splits of each branch, as docs/operators.md, "Decode", describes. If `spec.keySplits` is not
  // 0, it is the number of splits of each branch that has enough keys.
  static KeySplits make(const Spec &spec, const Maxima &maxima);
  // Returns the number of partial results that the kernel `merge` reads for each head of a query: the splits of all
  // branches that are on, rounded up to a multiple of 16.
  int64_t slots(const Spec &spec) const;
};

} // namespace nsa
