// The order in which the blocks (or clusters) of a persistent kernel work on the tiles of attention rows. An attention
// row is a pair of a query and a head of the group: row r belongs to query r / kGroup and to head r % kGroup. For each
// key/value head the work items with the last rows come first, because the last rows attend the most keys. At any one
// time the blocks work on only so many key/value heads that the keys and values of these heads fit into L2 together.
// Work items are numbered consecutively across all sequences, even if the sequences have different lengths.
//
// The template parameter Facts describes the kernel by constants: kRows (rows of a block), kCluster (blocks of a
// cluster), kGroup (query heads per key/value head), kWindowed, kKeyBytes (bytes of one key and its value), and the
// constants that sequence_place.cuh asks for.
#pragma once

#include "ptx_warp.cuh"
#include "sequence_place.cuh"

namespace nsa {

// One tile of attention rows and the keys that the rows see.
struct WorkItem {
  int32 q_entry;
  int32 k_entry;
  int32 k_begin;    // time of key 0
  int32 first_time; // time of query 0 of the launch
  int32 kv_head;
  int32 first_row;
  int32 rows;      // of the sequence and key/value head; 0: there is no further item; negative: nothing to compute
  int32 earlier;   // position of query 0, counted from key 0
  int32 first_key; // keys [first_key, past_key): some row of the cluster's tiles sees them
  int32 past_key;
};

// The work items of one worker (a block or a cluster), in the order in which it computes them. Each lane that calls
// next() keeps the state of the WorkOrder in its registers.
template <typename Facts, typename Arguments> class WorkOrder {
public:
  NSA_DEVICE explicit WorkOrder(const Arguments &args) : args(args) {}

  // Returns the worker's next work item, in which first_row is the first row of block `rank` of the cluster. All lanes
  // of a warp call WorkOrder::next() together and get the same work item.
  NSA_DEVICE WorkItem next(int32 rank) {
    const int32 worker = static_cast<int32>(blockIdx.x) / Facts::kCluster;
    const int32 workers = static_cast<int32>(gridDim.x) / Facts::kCluster;
    // Every second round assigns items to workers in reverse order, so that no worker gets the longest item of every
    // round.
    int32 index = round * workers + (round % 2 == 0 ? worker : workers - 1 - worker);
    ++round;

    SequencePlace place;
    if constexpr (Facts::kPacked) {
      if (!find_sequence(index))
        return {};
      place = place_sequence<Facts>(args, batch);
    } else {
      if constexpr (!Facts::kKeyOffset)
        place = place_sequence<Facts>(args, 0);
      const int32 tiles = tiles_of(place) * args.kv_heads;
      batch = tiles == 0 ? args.batch : index / tiles;
      if (batch >= args.batch)
        return {};
      index -= batch * tiles;
      place = place_sequence<Facts>(args, batch);
    }
    return item_of(place, index, rank);
  }

private:
  // Returns the number of work items for each key/value head of a sequence.
  NSA_DEVICE static int32 row_tiles(int32 queries) {
    constexpr int32 kRows = Facts::kRows * Facts::kCluster;
    return (queries * Facts::kGroup + kRows - 1) / kRows;
  }

  // Finds the sequence that holds work item `index`, and changes `index` to the number of the work item within this
  // sequence. A warp searches 32 sequences at a time, beginning with sequence `batch_group`: lane l counts the work
  // items of sequence batch_group + l. `items_before` is the number of work items in all sequences before sequence
  // `batch_group`.
  NSA_DEVICE bool find_sequence(int32 &index) {
    const int32 lane = static_cast<int32>(threadIdx.x) % kWarpSize;
    for (; batch_group < args.batch; batch_group += kWarpSize) {
      const int32 own_batch = batch_group + lane;
      const int32 own =
          own_batch < args.batch ? row_tiles(place_sequence<Facts>(args, own_batch).queries) * args.kv_heads : 0;
      int32 sum = own;
#pragma unroll
      for (int32 distance = 1; distance < kWarpSize; distance *= 2) {
        const int32 lower = shuffle(sum, lane < distance ? lane : lane - distance);
        sum += lane < distance ? 0 : lower;
      }
      const int32 group_items = shuffle(sum, kWarpSize - 1);
      if (index < items_before + group_items) {
        const uint32 past = ballot(index < items_before + sum);
        const int32 holder = __ffs(static_cast<int32>(past)) - 1;
        batch = batch_group + holder;
        index -= items_before + shuffle(sum - own, holder);
        return true;
      }
      items_before += group_items;
    }
    return false;
  }

  // Returns the number of work items for each key/value head of the sequence at `place`. A sequence of a dense launch
  // has them also where its offset of keys is malformed.
  NSA_DEVICE int32 tiles_of(const SequencePlace &place) const {
    if constexpr (Facts::kKeyOffset && !Facts::kPacked)
      return row_tiles(queries_of(args, 0, args.seqlen_q));
    else
      return row_tiles(place.queries);
  }

  // Returns the work item with the number `index` within a sequence. In the returned work item, first_row is the first
  // row of block `rank` of the cluster.
  NSA_DEVICE WorkItem item_of(const SequencePlace &place, int32 index, int32 rank) const {
    const int32 tiles = tiles_of(place);
    // `heads` is the number of key/value heads whose keys and values fit into L2 together. In sliding-window attention
    // each query attends few keys, so the keys and values in use fit into L2 for all heads.
    constexpr int32 kShareKeys = (40 << 20) / Facts::kKeyBytes;
    const int32 past = place.earlier + place.queries;
    const int32 keys = max((Facts::kKeyOffset ? min(past, place.k_length) : past) / Facts::kKeyStride, 1);
    const int32 fitting = Facts::kWindowed ? args.kv_heads : kShareKeys / keys;
    const int32 heads = max(min(fitting, args.kv_heads), 1);
    const int32 section = index / (tiles * heads);
    const int32 first_head = section * heads;
    const int32 section_heads = min(heads, args.kv_heads - first_head);
    const int32 within = index - section * tiles * heads;
    const int32 tile = tiles - 1 - within / section_heads;

    WorkItem item;
    item.q_entry = place.q_entry;
    item.k_entry = place.k_entry;
    item.k_begin = place.k_begin;
    item.first_time = place.first_time;
    item.kv_head = first_head + within % section_heads;
    item.rows = place.queries * Facts::kGroup;
    item.earlier = place.earlier;
    const int32 cluster_row = tile * Facts::kCluster * Facts::kRows;
    item.first_row = cluster_row + rank * Facts::kRows;
    const int32 last_row = min(cluster_row + Facts::kCluster * Facts::kRows, item.rows) - 1;
    item.past_key = past_real_key<Facts>(place.earlier + last_row / Facts::kGroup, place.k_length);
    const int32 first_position = place.earlier + cluster_row / Facts::kGroup;
    item.first_key = Facts::kWindowed ? first_windowed_key<Facts>(first_position, args.window) : 0;
    return item;
  }

  const Arguments &args;
  int32 round = 0;
  int32 batch = 0;
  int32 batch_group = 0;
  int32 items_before = 0;
};

} // namespace nsa
