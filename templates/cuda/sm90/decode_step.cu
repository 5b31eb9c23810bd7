// One step of decode in one launch, scheduled by hand for sm_90a: a few new tokens of each sequence are appended to the
// cache, the compressed row that they complete is made, and their queries attend the three branches.
// docs/specification.md defines the results (sections 3 to 10). The kernels of templates/tile that it replaces are
// cache_sequences, append, compress_*, split_attention, scores, rank, ascend and merge.
//
// A cluster of blocks serves one token of one sequence and one key/value head. Each block attends a part of the keys of
// each branch (decode_place.cuh, decode_attend.cuh). Warps of their own load the keys (decode_ring.cuh,
// decode_loader.cuh). A team of warps attends the window beside the others (decode_team.cuh).
//
// Blocks send what they find straight into the shared memory of the block that needs it (decode_exchange.cuh): the
// maxima and sums of the compressed branch, which make the probabilities, the best selection blocks
// (decode_select.cuh), and the results, of which each block adds up a slice (decode_result.cuh). Where weights make a
// compressed row, blocks also send the sums of their part of the weights (decode_compress.cuh). A warp of its own
// writes the new token and raises the length (decode_append.cuh).
//
// The time of a step is the latency of what must follow each other (the length, the pages, the compressed keys, the
// lists, the selected keys) and the number of instructions of a warp. What does not depend on a message or a load
// stands in its wait (decode_branches.cuh).
//
//! kernel  decode_step_sm90 serves decode_step
//! targets sm_90a
//! fixed   dtype, qk_dim, v_dim, group, page_size, cmp_block, cmp_stride, cmp_kind, sel_block, sel_count, gate
//! fixed   mlp_hidden, mlp_activation, gate_per_group, branches, room, pairs
//! require dtype_bytes == 2
// Rows are copied in pieces of 16 bytes.
//! require qk_dim % 8 == 0 && v_dim % 8 == 0 && qk_dim <= 256 && v_dim <= 256 && group <= 64
//! const   weighs = cmp_kind != mean, is_linear = cmp_kind == linear, is_mlp = cmp_kind == mlp
//! const   is_relu = mlp_activation == relu, is_gelu = mlp_activation == gelu
//! const   sigmoid_gates = gate == sigmoid, softmax_gates = gate == softmax
//! choice  cluster = 1 | 2 | 3 | 4 | 5 | 6 | 8 | 16
//! choice  stages = 4 | 8 | 12
//! const   heads = group > 32 ? 64 : group > 8 ? roundup(group, 16) : 8
//! const   qk_pad = roundup(qk_dim, 32), v_pad = roundup(v_dim, 64)
//! const   inner = sel_block / cmp_stride, before = cmp_block / cmp_stride - 1
//! const   room_blocks = ceildiv(room, sel_block)
//! const   ranks = branches / 2 % 2 != 0 && room_blocks > sel_count
//! const   compressed = branches % 2 != 0 || ranks
//! const   share = ceildiv(room_blocks, cluster), kept = min(sel_count, share)
// A block scores the compressed keys of its selection blocks, and of `back` selection blocks in front of them, in
// pieces of 16. The keys of a unit belong to the same selection blocks.
//! const   back = ceildiv(before, inner)
//! const   unit = inner % 16 == 0 ? 16 : inner % 8 == 0 ? 8 : inner % 4 == 0 ? 4 : 2 - inner % 2
//! require ranks * min(inner, before + 1) <= 256
//! const   local_pieces = ceildiv((share + back) * inner, 16), reach = roundup(16 / unit * (back + 1), 2)
//! const   pool_pitch = roundup(max(local_pieces * reach - 8, 0), 32) + 8
//! const   slice = roundup(ceildiv(group * v_dim, cluster), 4)
// Shared memory beside the ring of keys: queries, results and sums of all blocks, scores of selection, and the rest.
//! const   exchange_bytes = 3 * cluster * (4 * slice + 8 * heads) + heads * 16
// Where a block owns more selection blocks than it proposes, what may be listed of its blocks and of the candidates is
// copied.
//! const   gathers = share > sel_count
//! const   best = gathers ? roundup(max(share, cluster * kept), 4) : 0
//! const   list_bytes = 4 * roundup(share, 4) + 8 * roundup(cluster * kept, 4) + 8 * best
//! const   score_bytes = ranks ? 4 * group * (pool_pitch + local_pieces) : 0
// Half of the blocks multiply with the weights of K, and half with those of V: each has some inputs of a linear map, or
// some hidden values of a perceptron, a multiple of eight. Inputs pass through shared memory. The sums of each warp
// take their place, and hidden values stand behind them. Later this memory holds scores.
//! const   weight_parts = max(cluster / 2, 1), widest = max(qk_dim, v_dim)
//! const   hidden_share = is_mlp ? roundup(ceildiv(mlp_hidden, weight_parts), 8) : 0
//! const   input_tile = min(is_linear ? ceildiv(cmp_block * widest, weight_parts) : cmp_block * widest, 4096)
//! const   weight_columns = max(widest, min(hidden_share, 256))
//! const   work_bytes = weighs ? 4 * (max(roundup(input_tile, 4), 8 * weight_columns) + hidden_share) : 0
//! const   received_bytes = weighs ? 4 * weight_parts * (qk_dim + v_dim) : 0
//! const   rank_bytes = max(score_bytes, work_bytes) + (ranks ? list_bytes : 0)
//! const   page_count = page_size == 0 ? 0 : ceildiv(room, max(page_size, 1))
//! const   table_entries = page_count <= 4096 ? page_count : 0
// Maxima and sums of the warps for each head, addresses of rows, barriers and gaps.
//! const   rest_bytes = 4 * roundup(sel_count, 4) + 2 * (qk_dim + v_dim) + 4 * table_entries + 3072 + 768 + 1024
//! const   query_bytes = (1 + compressed) * heads * (2 * qk_pad + 16)
//! const   fixed_bytes = exchange_bytes + rank_bytes + received_bytes + rest_bytes + query_bytes
// A stage of a ring has one piece of 16 keys, and then 16 columns of the results of all heads.
//! const   piece_bytes = max(16 * (2 * (qk_pad + v_pad) + 32), 96 * heads)
// The window has a team of its own where another branch is attended beside it, where its warps have registers for the
// results of all heads, where its four pieces fit beside eight of the main team, and where the main team has so few
// pieces that latency counts more than instructions.
//! const   pieces = ceildiv((compressed ? ceildiv(room, cmp_stride) : 0) + sel_count * sel_block, 16 * cluster)
//! const   team_bytes = 4 * piece_bytes + 32 * heads + 512
//! const   team_fits = fixed_bytes + team_bytes + 8 * piece_bytes <= 232448 && pieces <= 96
//! const   window_team = branches > 4 && heads * v_pad <= 8192 && team_fits
//! const   shared_bytes = fixed_bytes + (window_team ? team_bytes : 0) + stages * piece_bytes
//! require shared_bytes <= 232448
// More blocks share the keys of one pair of a sequence and a head, but more clusters than fit at once take turns. The
// blocks of a cluster are neighbours, so on 132 multiprocessors fewer clusters fit than 132 / cluster: an H200 told how
// many. Of 16 blocks seven fit, and four are fast. A turn takes the time of 80 pieces beside its own, and a short ring
// makes pieces wait.
//! const   fit_few = cluster == 16 ? 4 : cluster == 8 ? 15 : cluster == 6 ? 17 : 22
//! const   fit = cluster == 4 ? 30 : cluster == 3 ? 39 : cluster < 3 ? 132 / cluster : fit_few
//! const   turns = ceildiv(pairs, fit)
//! cost    turns * (80 + pieces * 12 / stages)
//! shared  shared_bytes
//! grid    cluster * max_seqlen_q, kv_heads, batch
//! const   all_threads = window_team ? (group > 8 ? 512 : 480) : 384
//! threads all_threads
//! param view q dtype 3
//! param view q_cmp dtype 3
//! param view k_sel_cache dtype 3 paged page_size
//! param view v_sel_cache dtype 3 paged page_size
//! param view k_win_cache dtype 3 paged page_size
//! param view v_win_cache dtype 3 paged page_size
//! param view k_comp dtype 3 paged page_size / cmp_stride
//! param view v_comp dtype 3 paged page_size / cmp_stride
//! param view gates dtype 4
//! param view out dtype 3
//! param view reads int32 3
//! param view o_cmp dtype 3
//! param view o_sel dtype 3
//! param view o_win dtype 3
//! param view lse_cmp fp32 3
//! param view lse_sel fp32 3
//! param view lse_win fp32 3
//! param view block_list int32 4
//! param view cu_seqlens_q int32 1
//! param view cache_seqlens int32 1
//! param view block_table int32 2 if page_size > 0
//! param view k_sel dtype 3
//! param view v_sel dtype 3
//! param view k_win dtype 3
//! param view v_win dtype 3
//! param view k_cmp dtype 3
//! param view v_cmp dtype 3
//! param view k_raw dtype 3
//! param view v_raw dtype 3
//! param view arrivals int32 2
//! param view status int32 1
//! param view pe_k dtype 1 if weighs
//! param view pe_v dtype 1 if weighs
//! param view w_k dtype 2 if is_linear
//! param view w_v dtype 2 if is_linear
//! param view b_k dtype 1 if is_linear
//! param view b_v dtype 1 if is_linear
//! param view w1_k dtype 2 if is_mlp
//! param view w1_v dtype 2 if is_mlp
//! param view b1_k dtype 1 if is_mlp
//! param view b1_v dtype 1 if is_mlp
//! param view w2_k dtype 1 if is_mlp
//! param view w2_v dtype 1 if is_mlp
//! param view b2_k dtype 1 if is_mlp
//! param view b2_v dtype 1 if is_mlp
//! param i32 kv_heads
//! param i32 window
//! param i32 init_blocks
//! param i32 local_blocks
//! param f32 scale_log2
//! param i32 capacity
//! param i32 pages
//! param i32 max_seqlen_q
//! param i32 max_seqlen_k
//! param i32 total_q
//! param i32 seqlen_q
//! const   bad_cu_seqlens_q = status_bad_cu_seqlens_q, bad_cache_seqlens = status_bad_cache_seqlens
//! const   seqlen_q_over_maximum = status_seqlen_q_over_maximum, cache_full = status_cache_full
//! const   seqlen_k_over_maximum = status_seqlen_k_over_maximum, bad_page = status_bad_page

#include "report.cuh"
#include "sm90/decode_append.cuh"
#include "sm90/decode_branches.cuh"
#include "sm90/decode_compress.cuh"
#include "sm90/decode_loader.cuh"
#include "sm90/ptx_block.cuh"

using namespace nsa;

${facts}
using Shape = DecodeShape<Facts>;
using MainTeam = DecodeTeam<Facts, false>;
using WindowTeam = DecodeTeam<Facts, true>;

${arguments}

// Reports a broken rule once for its sequence. The arguments differ between kernels, so what uses them is a template.
template <typename Args> NSA_DEVICE void report_code(const Args &args, const DecodePlace &place, int32 code) {
  report(code != 0 && blockIdx.x == 0 && place.kv_head == 0, code, place.sequence, args.status);
}

// All threads but the loaders meet, and the loaders are told what was found. `bad_page` says whether the thread has
// found a page that does not exist. Returns false if a thread has.
NSA_DEVICE bool begin(bool bad_page) {
  constexpr int32 kLoaders = Shape::kMainLoaders + Shape::kWindowLoaders;
  const bool bad = named_barrier_any(kBegins, Shape::kAllThreads - kLoaders * kWarpSize, bad_page);
  if (threadIdx.x < kWarpSize) {
    *DecodeMemory<MainTeam>(block_memory()).numbers(MainTeam::kBadPageAt) = bad;
    announce_begin<Shape>();
  }
  if (bad)
    announce_ready<Shape>(); // no barrier is left half full
  return !bad;
}

// Tells the loader of the new compressed row, if the block scores it.
NSA_DEVICE void announce_row(const DecodePlace &place) {
  if constexpr (MainTeam::kReadsCompressed)
    if (place.uses_fresh())
      announce_fresh<MainTeam>();
}

// The work of a loader of a team.
template <typename Team, typename Args>
NSA_DEVICE void load(const Args &args, const DecodePlace &place, int32 loader) {
  const DecodeMemory<Team> memory(block_memory());
  announce_ready<Shape>();
  DecodeRing<Team> ring(place, memory);
  if (!DecodeLoader<Team, Args>(args, ring, loader).run())
    return;
  if constexpr (!Team::kIsWindow)
    if (loader == 0)
      DecodeResult<Team, Args>{args, place, memory}.store_list(ring);
  cluster_wait();
}

// The work of the clerk. The gates are loaded when all have met, so that the loaders do not wait for them.
template <typename Args> NSA_DEVICE void keep_books(const Args &args, const DecodePlace &place) {
  const DecodeMemory<MainTeam> memory(block_memory());
  if (!begin(false))
    return;
  cluster_arrive_relaxed();
  expect_messages(memory, place);
  make_gates(args, place, memory);
  announce_ready<Shape>();
  const DecodeClerk<Shape, Args> clerk{args, place};
  clerk.append();
  cluster_wait(); // all blocks have read the length and the ring
  clerk.raise_length();
}

// The work of the window's team. It loads the queries of the tokens, if the compressed branch has its own.
template <typename Team, typename Args> NSA_DEVICE void attend_beside(const Args &args, const DecodePlace &place) {
  const DecodeMemory<Team> memory(block_memory());
  if (!begin(false))
    return;
  if (!shares_queries<Shape>(args))
    copy_queries<Team>(memory.queries(kTokenQueries), args.q, place, rows_aligned(args.q));
  clear_padding(memory);
  cluster_arrive_relaxed();
  finish_copies();
  await_queries<Shape>();
  attend_window(args, place, memory);
}

// Makes the compressed row that new tokens complete, or with weights the block's part of it. Then the ring was read.
// The row is finished when the blocks of the cluster have met.
template <typename Args>
NSA_DEVICE void begin_fresh(const Args &args, const DecodePlace &place, const DecodeMemory<MainTeam> &memory) {
  if constexpr (Shape::kWeighs) {
    if (place.fresh_key >= 0)
      WeightedRow<MainTeam, Args>{args, place, memory}.multiply();
  } else {
    average_fresh(args, place, memory);
    announce_row(place);
  }
}
template <typename Args>
NSA_DEVICE void finish_fresh(const Args &args, const DecodePlace &place, const DecodeMemory<MainTeam> &memory) {
  if constexpr (Shape::kWeighs) {
    if (!meets_early<MainTeam>(place))
      return;
    cluster_wait(); // the other blocks run and have prepared their barriers
    WeightedRow<MainTeam, Args>{args, place, memory}.exchange();
    announce_row(place);
  }
}

// The work of the main team in a sequence that keeps the rules.
template <typename Args>
NSA_DEVICE void attend(const Args &args, const DecodePlace &place, const DecodeMemory<MainTeam> &memory,
                       bool bad_page) {
  if (!begin(bad_page))
    return report_code(args, place, Facts::kBadPage);
  if constexpr (Shape::kCompressed)
    copy_queries<MainTeam>(memory.queries(kCompressedQueries), args.q_cmp, place, rows_aligned(args.q_cmp));
  if constexpr (!Shape::kHasWindowTeam)
    if (!shares_queries<Shape>(args))
      copy_queries<MainTeam>(memory.queries(kTokenQueries), args.q, place, rows_aligned(args.q));
  clear_padding(memory);
  begin_fresh(args, place, memory);
  cluster_arrive_relaxed();
  finish_copies();
  await_queries<Shape>();
  finish_fresh(args, place, memory);
  DecodeRing<MainTeam> ring(place, memory);
  attend_branches(args, place, memory, ring);
}

// The work of the main team.
template <typename Args> NSA_DEVICE void attend_step(const Args &args) {
  const DecodeMemory<MainTeam> memory(block_memory());
  const DecodePages<MainTeam> pages(args);
  const DecodePlace place = find_place<Shape>(args, [] {});
  if (!place.runs)
    report_code(args, place, place.code);
  else // the pages of all new tokens: clusters of other tokens must come to the same result
    attend(args, place, memory, pages.finds_bad(args, memory, place.cached() + place.added));
}

// Each warp has its work by its number. Where there is no team for the window, `Window` is not used.
template <typename Args, typename Window> NSA_DEVICE void step(const Args &args) {
  constexpr int32 kLoaders = Shape::kMainWarps + Shape::kWindowWarps; // the first loader
  constexpr int32 kWindowLoaders = kLoaders + Shape::kMainLoaders;
  const int32 warp = shuffle(static_cast<int32>(threadIdx.x) / kWarpSize, 0);
  if (warp < Shape::kMainWarps)
    return attend_step(args);
  const DecodePlace place = find_place<Shape>(args, [&] {
    if (warp == Shape::kClerk)
      return make_message_barriers(DecodeMemory<MainTeam>(block_memory()));
    if constexpr (Shape::kHasWindowTeam)
      if (warp >= kWindowLoaders)
        return make_ring_barriers(DecodeMemory<Window>(block_memory()), warp - kWindowLoaders);
    if (warp >= kLoaders)
      make_ring_barriers(DecodeMemory<MainTeam>(block_memory()), warp - kLoaders);
  });
  if (!place.runs)
    return;
  if (warp == Shape::kClerk)
    return keep_books(args, place);
  if constexpr (Shape::kHasWindowTeam) {
    if (warp < kLoaders)
      return attend_beside<Window>(args, place);
    if (warp >= kWindowLoaders)
      return load<Window>(args, place, warp - kWindowLoaders);
  }
  load<MainTeam>(args, place, warp - kLoaders);
}

// A block without neighbours is launched as a cluster, too: the threads meet at a barrier of the cluster, and a launch
// without clusters did not end.
extern "C" __global__ void __cluster_dims__(${cluster}, 1, 1)
    __launch_bounds__(Shape::kAllThreads, 1) decode_step_sm90(const __grid_constant__ Arguments args) {
  step<Arguments, WindowTeam>(args);
}
