// The work of a consumer warpgroup of attention on sm_90a: for each work item, it multiplies 64 rows of queries with
// one tile of keys after the other. The warpgroup starts two matrix products together: the scores of the next tile of
// keys, and the product of the current tile's weights and values. While the product of weights and values runs, the
// warpgroup turns the new scores into weights. The two products overlap even if the next tile is the first tile of the
// next item, so the matrix units do not wait at the end of an item.
#pragma once

#include "sm90/attention_result.cuh"
#include "sm90/attention_shape.cuh"
#include "sm90/ptx_opaque.cuh"
#include "sm90/ptx_wgmma.cuh"

namespace nsa {

template <typename Shape, typename Arguments> class AttentionConsumer {
public:
  using Facts = typename Shape::Facts;
  using Element = typename Shape::Element;

  NSA_DEVICE AttentionConsumer(const Arguments &args, int32 warpgroup)
      : args(args), warpgroup(warpgroup),
        next_turn(opaque(kTurnBarrier + (warpgroup + 1 == Shape::kWarpgroups ? 0 : warpgroup + 1))) {}

  NSA_DEVICE void run() {
    if (warpgroup == Shape::kWarpgroups - 1)
      named_barrier_arrive(kTurnBarrier, 256);
    RingPlace<Shape::kItemSlots> place;
    await_item<Shape>(place);
    if (item_at(place).rows == 0)
      return;

    Tiles tiles(item_at(place), args.window);
    int32 tile = tiles.count - 1;
    SoftmaxRows softmax, before;
    Scores s;
    Weights p;
    Result o;
    float rescale[2];
    clear(o);
    await_queries();
    await_keys();
    begin_scores(s);
    wgmma_wait<0>();
    wgmma_hold(s);
    leave_keys();
    if (tile == 0)
      leave_queries();
    weigh(item_at(place), tiles, tile, softmax, s, rescale);
    round_weights<Element>(p, s);
    if (tile > 0)
      await_keys();

    // At the beginning of each iteration, `p` holds the softmax weights of the keys in tile number `tile`.
#pragma unroll 1
    while (true) {
      tame_values(item_at(place), tiles, tile, o);
      const bool ends = tile == 0;
      if (ends) {
        const WorkItem &next = await_item<Shape>(place.next());
        if (next.rows == 0)
          break;
        tiles = Tiles(next, args.window);
        tile = tiles.count;
        before = softmax;
        softmax = {};
        await_queries();
        await_keys();
      }
      --tile;
      begin_turn();
      begin_scores(s);
      await_values();
      begin_result(o, p);
      end_turn();
      wgmma_wait<1>();
      wgmma_hold(s);
      leave_keys();
      if (tile == 0)
        leave_queries();
      weigh(item_at(ends ? place.next() : place), tiles, tile, softmax, s, rescale);
      // wgmma_hold(s) keeps the computation of the weights before the wait for the product of weights and values.
      // Without wgmma_hold(s), the compiler would first wait for the product, and the weights would not be computed
      // while the product runs.
      wgmma_hold(s);
      if (tile > 0 && !ends)
        await_keys();
      wgmma_wait<0>();
      wgmma_hold(o);
      leave_values();
      round_weights<Element>(p, s);
      if (ends) {
        store_result<Shape>(args, item_at(place), before, o);
        leave_item<Shape>(place);
        clear(o);
        // The warpgroup sends the results of the last item before it waits for the keys of the next item, because the
        // producer may still be computing which keys the next item has.
        if (tile > 0)
          await_keys();
        continue;
      }
#pragma unroll
      for (int32 half = 0; half < 2; ++half)
        scale_row(o, half, rescale[half]);
    }

    await_values();
    begin_result(o, p);
    wgmma_wait<0>();
    wgmma_hold(o);
    store_result<Shape>(args, item_at(place), softmax, o);
  }

private:
  using Tiles = KeyTiles<Shape>;
  using Scores = float[Shape::kKeyTile / 2];
  using Weights = uint32[Shape::kKeySteps][4];
  using Result = float[(Facts::kVDim + 7) / 8 * 4];

  // The named barriers of attention: one for the turn of each warpgroup, and one for all consumers.
  static constexpr int32 kTurnBarrier = 1;
  static constexpr int32 kConsumersBarrier = kTurnBarrier + Shape::kWarpgroups;

  NSA_DEVICE static typename Shape::Tail &tail() { return Shape::tail(); }
  NSA_DEVICE static void wait(const uint64 &barrier, int32 parity) { barrier_wait(shared_address(&barrier), parity); }

  // Sets all elements of `o` to zero. The function opaque_zero() hides the zero from the compiler, which would
  // otherwise turn the loop into a memset. A memset of a wide result makes the compiler keep the result in local memory
  // instead of registers.
  NSA_DEVICE static void clear(Result &o) {
#pragma unroll
    for (int32 i = 0; i < static_cast<int32>(sizeof(Result) / sizeof(float)); ++i)
      o[i] = Facts::kVDim > 128 ? opaque_zero() : 0;
  }

  NSA_DEVICE static const WorkItem &item_at(RingPlace<Shape::kItemSlots> place) { return tail().items[place.stage()]; }

  // Returns the range of keys that a row attends. Only edge tiles need the range of keys of a row, so the range is
  // computed for each edge tile instead of being kept in registers.
  NSA_DEVICE KeyRange keys_of(const WorkItem &item, int32 row) const {
    const int32 past = past_visible_key<Facts>(item.earlier + row / Facts::kGroup);
    return {Facts::kWindowed ? past - args.window : 0, Facts::kKeyOffset ? min(past, item.past_key) : past};
  }

  // Starts the product of the queries with the tile of keys in the current stage of the ring of keys.
  NSA_DEVICE void begin_scores(Scores &s) {
    constexpr int32 kSwizzle = Shape::kSwizzle;
    const uint64 tiles = depth_major_descriptor(Shape::memory(), kSwizzle);
    const uint64 q_tile = tiles + descriptor_step(Shape::kQ) + warpgroup * descriptor_step(Shape::kQBytes);
    const uint64 k_tile = tiles + descriptor_step(Shape::kK) + k.stage() * descriptor_step(Shape::kKBytes);
    wgmma_fence();
#pragma unroll
    for (int32 step = 0; step < Shape::kQkSteps; ++step)
      wgmma<false, false>(Element{}, s, q_tile + descriptor_step(depth_major_offset(step * kWgmmaDepth, 64, kSwizzle)),
                          k_tile + descriptor_step(depth_major_offset(step * kWgmmaDepth, Shape::kKeyTile, kSwizzle)),
                          step > 0);
    wgmma_commit();
  }

  // Starts the product of the weights with the tile of values in the current stage of the ring of values.
  NSA_DEVICE void begin_result(Result &o, const Weights &p) {
    const uint64 v_tile = row_depth_descriptor(Shape::memory(), Shape::kKeyTile, Shape::kSwizzle) +
                          descriptor_step(Shape::kV) + v.stage() * descriptor_step(Shape::kVBytes);
    wgmma_fence();
#pragma unroll
    for (int32 step = 0; step < Shape::kKeySteps; ++step)
      wgmma<true>(Element{}, o, p[step],
                  v_tile + descriptor_step(row_depth_offset(step * kWgmmaDepth, Shape::kSwizzle)), 1);
    wgmma_commit();
  }

  NSA_DEVICE void await_queries() { wait(tail().q_full[warpgroup], q.full_parity()); }
  NSA_DEVICE void leave_queries() {
    leave_own(tail().q_empty[warpgroup]);
    q.advance();
  }
  NSA_DEVICE void await_keys() { wait(tail().k_full[k.stage()], k.full_parity()); }
  NSA_DEVICE void leave_keys() {
    leave<Shape>(tail().k_empty[k.stage()]);
    k.advance();
  }
  NSA_DEVICE void await_values() { wait(tail().v_full[v.stage()], v.full_parity()); }
  NSA_DEVICE void leave_values() {
    leave<Shape>(tail().v_empty[v.stage()]);
    v.advance();
  }

  // Removes Inf and NaN from the values of an edge tile, which is a tile with a key that some row may not attend
  // (wild_values.cuh). The warpgroup calls tame_values for each tile before the warpgroup multiplies weights with the
  // tile's values. No matrix product of the warpgroup may be running during tame_values, because tame_values adds to
  // the accumulator `o`.
  NSA_DEVICE void tame_values(const WorkItem &item, const Tiles &tiles, int32 tile, Result &o) {
    if (!tiles.is_edge(tile))
      return;
    await_values();
    wait(tail().v_seen[v.stage()], seen >> v.stage() & 1);
    seen ^= 1u << v.stage();
    uint32 wild = 0;
#pragma unroll
    for (int32 inspector = 0; inspector < Shape::kInspectors; ++inspector)
      wild |= tail().wild[v.stage()][inspector];
    if (wild == 0)
      return;
    const int32 first_row = item.first_row + 64 * warpgroup;
    const KeyRange rows[2] = {keys_of(item, first_row + warpgroup_row(0)), keys_of(item, first_row + warpgroup_row(1))};
    add_wild(o, Shape::values(v.stage()), tiles.key(tile), rows);
    named_barrier_sync(kConsumersBarrier, 128 * Shape::kWarpgroups);
    clear_wild(Shape::values(v.stage()), static_cast<int32>(threadIdx.x) - 128, 128 * Shape::kWarpgroups);
    fence_async();
    named_barrier_sync(kConsumersBarrier, 128 * Shape::kWarpgroups);
  }

  // Turns the scores of a tile into softmax weights. In an edge tile, weigh() first masks the scores of keys that a row
  // may not attend.
  NSA_DEVICE void weigh(const WorkItem &item, const Tiles &tiles, int32 tile, SoftmaxRows &softmax, Scores &s,
                        float (&rescale)[2]) const {
    if (tiles.is_edge(tile)) {
      const int32 first_row = item.first_row + 64 * warpgroup;
      const int32 warp_row = first_row + static_cast<int32>(threadIdx.x) % 128 / kWarpSize * 16;
      const KeyRange rows[2] = {keys_of(item, first_row + warpgroup_row(0)),
                                keys_of(item, first_row + warpgroup_row(1))};
      mask_scores(s, tiles.key(tile), rows, {keys_of(item, warp_row + 15).first, keys_of(item, warp_row).past});
    }
    softmax.weigh(s, rescale, args.scale_log2);
  }

  // Warpgroups take turns at the matrix units: between begin_turn and end_turn only one warpgroup starts products.
  NSA_DEVICE void begin_turn() { named_barrier_sync(kTurnBarrier + warpgroup, 256); }
  NSA_DEVICE void end_turn() { named_barrier_arrive(next_turn, 256); }

  const Arguments &args;
  int32 warpgroup;
  int32 next_turn; // the barrier of the next warpgroup; opaque, so that it is not computed anew for each tile
  RingPlace<1> q;
  RingPlace<Shape::kStages> k, v;
  uint32 seen = 0; // bit i: the parity that says that the values of stage i were inspected
};

} // namespace nsa
