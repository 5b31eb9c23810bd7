// The order in which the eight warps of a block attend the branches, choose the list and add up the results, so that
// waits for memory and for other blocks are filled with work that depends on nothing that is waited for.
#pragma once

#include "sm90/decode_result.cuh"
#include "sm90/decode_select.cuh"

namespace nsa {

// The work of the eight warps that attend. The loaders fill the ring, and the gates are in shared memory.
//
// A branch after the other is attended by the same instructions, because instructions are fetched once for a launch:
// code that runs once waits for them.
template <typename Shape, typename Arguments>
NSA_DEVICE void attend_branches(const Arguments &args, const DecodePlace &place, const DecodeMemory<Shape> &memory,
                                DecodeRing<Shape> &ring) {
  constexpr int32 kFirst = Shape::kHasCmp ? kCmp : Shape::kHasWin ? kWin : kSel;
  constexpr int32 kLast = Shape::kHasSel ? kSel : Shape::kHasWin ? kWin : kCmp;
  const bool ranks = Shape::kRanks && place.ranks;
  unsigned char *token_queries = memory.queries(shares_queries<Shape>(args) ? kCompressedQueries : kTokenQueries);
  DecodeAttention<Shape> attention(ring, args.scale_log2);
  const DecodeResult<Shape, Arguments> result{args, place, memory};
  const int32 compressed_keys = place.past_key - place.first_key;

#pragma unroll 1
  for (int32 turn = 0; turn < kDecodeBranches; ++turn) {
    const int32 branch = turn == 0 ? kCmp : turn == 1 ? kWin : kSel;
    const BranchKeys keys =
        branch == kCmp ? BranchKeys{ring.cmp_tiles, place.attended_key - place.first_key, compressed_keys, true, false}
        : branch == kWin ? BranchKeys{ring.win_tiles, 0, place.past_token - place.first_token, false, false}
                         : BranchKeys{ring.sel_tiles(), 0, ring.sel_keys, false, true};
    attention.attend(keys, branch == kCmp ? memory.queries(kCompressedQueries) : token_queries,
                     [&](const PieceScores &s, int32 key) {
                       if (ranks && branch == kCmp)
                         keep_scores<Shape>(s, memory, attention.at, key, compressed_keys);
                     });
    if (turn == 0)
      cluster_wait(); // the other blocks run and have prepared their barriers
    if (Shape::has(branch) || (ranks && branch == kCmp))
      push_softmax(attention, memory, place.rank, branch, softmax_message(branch));
    if (Shape::has(branch))
      push_partials(attention, memory, place.rank, branch, partials_message(branch));
    attention.release();

    // A list is made when the window was attended, because the maxima and sums that it needs are on their way until
    // then. What is complete is added up while the other blocks propose, and while the selected keys are loaded.
    if (turn != (ranks ? 1 : 2))
      continue;
    if (Shape::kHasCmp || ranks) {
      await(memory, kCmpSoftmax);
      make_factors(memory, kCmp, args.scale_log2, [&](int32 head, float lse) {
        memory.floats(Shape::kNormsAt)[head] = lse == -infinity() ? lse : -lse;
        if constexpr (Shape::kHasCmp)
          result.store_lse(args.lse_cmp, head, lse);
      });
    }
    if (ranks)
      propose_blocks<Shape>(memory, place, args.scale_log2, args.init_blocks, args.local_blocks);
    if constexpr (Shape::kHasCmp) {
      await(memory, kCmpPartials);
      result.template add<kCmp, kFirst, kLast == kCmp>(args.o_cmp);
    }
    if (ranks) {
      await(memory, kProposals);
      make_list(memory, place);
      announce_list<Shape>();
      meet<Shape>();
      ring.add_selected();
    }
    if constexpr (Shape::kHasWin) {
      await(memory, kWinPartials);
      make_factors(memory, kWin, args.scale_log2,
                   [&](int32 head, float lse) { result.store_lse(args.lse_win, head, lse); });
      result.template add<kWin, kFirst, kLast == kWin>(args.o_win);
    }
  }
  if constexpr (Shape::kHasSel) {
    await(memory, kSelPartials);
    make_factors(memory, kSel, args.scale_log2,
                 [&](int32 head, float lse) { result.store_lse(args.lse_sel, head, lse); });
    result.template add<kSel, kFirst, true>(args.o_sel);
  }
}

} // namespace nsa
