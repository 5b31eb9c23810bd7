// The order in which the eight warps of a block attend the branches, choose the list and add up the results, so that
// waits for memory and for other blocks are filled with work that depends on nothing that is waited for.
#pragma once

#include "sm90/decode_result.cuh"
#include "sm90/decode_select.cuh"

namespace nsa {

// The work of the eight warps that attend. `ring` has begun to load, and the gates are in shared memory.
template <typename Shape, typename Arguments>
NSA_DEVICE void attend_branches(const Arguments &args, const DecodePlace &place, const DecodeMemory<Shape> &memory,
                                DecodeRing<Shape, Arguments> &ring) {
  constexpr int32 kFirst = Shape::kHasCmp ? kCmp : Shape::kHasWin ? kWin : kSel;
  constexpr int32 kLast = Shape::kHasSel ? kSel : Shape::kHasWin ? kWin : kCmp;
  unsigned char *token_queries = memory.queries(shares_queries<Shape>(args) ? kCompressedQueries : kTokenQueries);
  DecodeAttention<Shape, Arguments> attention(ring, args.scale_log2);
  const DecodeResult<Shape, Arguments> result{args, place, memory};
  const auto keep_none = [](const auto &, int32) {};
  const auto add_compressed = [&] {
    if constexpr (Shape::kHasCmp) {
      await(memory, kCmpSoftmax);
      await(memory, kCmpPartials);
      result.template add<kCmp, kFirst, kLast == kCmp>(args.o_cmp);
      result.store_lse(args.lse_cmp, kCmp);
    }
  };

  if constexpr (Shape::kCompressed) {
    const int32 keys = place.past_key - place.first_key;
    const auto keep = [&](const auto &s, int32 tile) {
      if (Shape::kRanks && place.ranks)
        keep_scores<Shape>(s, memory, attention.at, tile * Shape::kKeyTile, keys);
    };
    const int32 halo = place.attended_key - place.first_key;
    attention.template attend<Shape::kHasCmp>(ring.cmp_tiles, memory.queries(kCompressedQueries), keep,
                                              [&](int32 key) { return key >= halo && key < keys; });
  }
  cluster_wait(); // the other blocks run and have prepared their barriers
  // The list waits for maxima and sums, and nothing for results yet.
  if (Shape::kHasCmp || (Shape::kRanks && place.ranks))
    push_softmax(attention.state, memory, place.rank, kCmp, kCmpSoftmax);
  if constexpr (Shape::kHasCmp)
    push_partials(attention.state, memory, place.rank, kCmp, kCmpPartials);

  if (Shape::kRanks && place.ranks) {
    await(memory, kCmpSoftmax);
    propose_blocks<Shape>(memory, place, args.scale_log2, args.init_blocks, args.local_blocks);
    add_compressed();
    await(memory, kProposals);
    make_list(memory, place);
    meet<Shape>();
    ring.add_selected();
    ring.load_ahead(attention.current);
  }
  result.store_list();

  if constexpr (Shape::kHasWin) {
    const int32 keys = place.past_token - place.first_token;
    attention.template attend<true>(ring.win_tiles, token_queries, keep_none, [&](int32 key) { return key < keys; });
    push_partials(attention.state, memory, place.rank, kWin, kWinPartials);
    push_softmax(attention.state, memory, place.rank, kWin, kWinPartials);
  }
  if constexpr (Shape::kHasSel) {
    attention.template attend<true>(ring.sel_tiles(), token_queries, keep_none,
                                    [&](int32 key) { return ring.attends_selected(key); });
    push_partials(attention.state, memory, place.rank, kSel, kSelPartials);
    push_softmax(attention.state, memory, place.rank, kSel, kSelPartials);
  }

  if (!(Shape::kRanks && place.ranks))
    add_compressed();
  if constexpr (Shape::kHasWin) {
    await(memory, kWinPartials);
    result.template add<kWin, kFirst, kLast == kWin>(args.o_win);
    result.store_lse(args.lse_win, kWin);
  }
  if constexpr (Shape::kHasSel) {
    await(memory, kSelPartials);
    result.template add<kSel, kFirst, true>(args.o_sel);
    result.store_lse(args.lse_sel, kSel);
  }
}

} // namespace nsa
