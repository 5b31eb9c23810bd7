// Causal attention with its log-sum-exp, scheduled by hand for sm_90a. It computes the operators of
// templates/tile/attention.tile, which defines them.
//
// One block per multiprocessor runs until the kernel ends and takes tile after tile of rows (work_items.cuh). One warp
// of the block has the copy engine load queries, keys and values into rings of shared memory. Three warps look for
// values that must not meet a zero weight (attention_producer.cuh has both roles). Two or three warpgroups of 64 rows
// each multiply: scores come from operands in shared memory, and weights stay in registers (attention_consumer.cuh).
//
// As in FlashAttention-3 (arXiv 2407.08608), a warpgroup starts the scores of the next keys before it multiplies the
// last weights with their values, and the warpgroups take turns at the matrix units. Here a warpgroup does so across
// the ends of its tiles of rows too. docs/lab/hopper_attention.md says what else was tried.
//
//! kernel  attention_sm90 serves dense, window, cmp
//! include header/causal_attention.inc
//! targets sm_90a
// A plan with few queries cannot fill tiles of 128 rows. Other templates serve it.
//! require page_size == 0 && dtype_bytes == 2 && many_queries
// The copy engine needs rows that consist of whole 16-byte pieces. A box of 64 rows must hold whole queries.
//! require qk_dim % 8 == 0 && v_dim % 8 == 0 && qk_dim <= 256 && v_dim <= 256
//! require 64 % group == 0 || group == 128
//! choice  warpgroups = 2 | 3
//! choice  key_tile = 64 | 80 | 96 | 112 | 128 | 176
//! choice  stages = 2 | 3 | 4
// Four stages need fewer instructions than three, because 4 is a power of 2; this saves half a percent. With two
// warpgroups, four stages of the tiles that are good for heads of 128 do not fit into shared memory.
//! require stages < 4 || warpgroups == 3
// Two blocks of a cluster may share what the copy engine loads. Where power limits both variants, the cluster takes
// between 1.3 % more and 1.3 % less time with the tile that is best in most cases. For compressed attention with groups
// of 8 and 1024 to 8192 tokens it takes 2 to 13 % less (docs/lab/hopper_attention.md). So clusters are tried with this
// tile alone.
//! choice  cluster = 1 | 2
//! require cluster == 1 || (warpgroups == 3 && key_tile == 80)
//! const   key_bytes = (qk_dim + v_dim) * dtype_bytes
//! const   qk_chunks = (qk_dim + 63) / 64
//! const   v_chunks = (v_dim + 63) / 64
//! const   tile_bytes = 128 * (64 * warpgroups * qk_chunks + stages * key_tile * (qk_chunks + v_chunks))
//! const   shared_bytes = tile_bytes + 1024
//! require shared_bytes <= 232448
// Registers of a consumer thread: scores, weights and the result. setmaxnreg divides the 65536 registers of a
// multiprocessor between the roles.
//! const   registers = (key_tile + v_dim) / 2 + key_tile / 4
//! require registers <= (warpgroups == 3 ? 124 : v_dim > 128 ? 176 : 200)
//! shared  shared_bytes
// The cost of one row with 1024 allowed keys, in the unit of tile/attention.tile. The matrix units are used to three
// fifths up to four fifths.
//! const   slowness = warpgroups == 3 ? 26 : key_tile >= 128 ? 29 : 33
//! const   reach = 1024 + key_tile + 64 * warpgroups / (group * key_stride)
//! cost    reach * (qk_dim + v_dim + 60) * (slowness + 400 / key_tile + (stages == 2) + (cluster == 2)) / 50 + (stages < 4)
//! const   rows = 64 * warpgroups
//! const   item_rows = rows * cluster
//! grid    cluster * min(multiprocessors / cluster, ceildiv(max_seqlen_q * group, item_rows) * kv_heads * batch), 1, 1
//! threads 128 * (warpgroups + 1)
//! param map q_map q qk_dim, min(group, 64), max(64 / group, 1)
//! param map k_map k qk_dim, 1, key_tile / cluster
//! param map v_map v v_dim, 1, key_tile / cluster
//! include header/causal_attention_arguments.inc
//! param i32 kv_heads
//! param i32 batch

#include "sm90/attention_consumer.cuh"
#include "sm90/attention_producer.cuh"

using namespace nsa;

${facts}
using Shape = AttentionShape<Facts>;

// Warpgroup 0 loads (its first warp) and inspects values (its other three warps). The other warpgroups multiply.
constexpr int32 kThreads = 128 * (Shape::kWarpgroups + 1);
// Registers per thread of each role. Together they take at most the 65536 registers of a multiprocessor.
constexpr int32 kProducerRegisters = Shape::kWarpgroups == 3 ? 56 : 40;
constexpr int32 kConsumerRegisters = Shape::kWarpgroups == 3 ? 152 : 232;

${arguments}

extern "C" __global__ void
#if ${cluster} > 1
__cluster_dims__(${cluster}, 1, 1)
#endif
    __launch_bounds__(kThreads, 1) attention_sm90(const __grid_constant__ Arguments args) {
  if (threadIdx.x == 0) {
    prefetch_map(args.q_map);
    prefetch_map(args.k_map);
    prefetch_map(args.v_map);
    Shape::make_barriers();
  }
  if constexpr (Shape::kCluster == 1) {
    __syncthreads();
  } else {
    cluster_arrive();
    cluster_wait();
  }

  const int32 warpgroup = shuffle(static_cast<int32>(threadIdx.x) / 128, 0);
  if (warpgroup == 0) {
    lower_registers<kProducerRegisters>();
    if (shuffle(static_cast<int32>(threadIdx.x) / kWarpSize, 0) == 0)
      produce_attention<Shape>(args);
    else
      inspect_values<Shape>(args);
  } else {
    raise_registers<kConsumerRegisters>();
    AttentionConsumer<Shape, Arguments>(args, warpgroup - 1).run();
  }
  // No block ends while other blocks of the cluster may still arrive at its barriers.
  if constexpr (Shape::kCluster > 1) {
    __syncwarp();
    cluster_arrive();
    cluster_wait();
  }
}
