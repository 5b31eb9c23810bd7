// The order in which the teams of a block attend the branches, choose the list and add up the results. Waits for memory
// and for other blocks are filled with work that depends on nothing that is waited for.
#pragma once

#include "sm90/decode_result.cuh"
#include "sm90/decode_select.cuh"

namespace nsa {

// The tile of queries of the selected branch and of the window.
template <typename Team, typename Arguments>
NSA_DEVICE unsigned char *token_queries(const Arguments &args, const DecodeMemory<Team> &memory) {
  return memory.queries(shares_queries<Team>(args) ? kCompressedQueries : kTokenQueries);
}

// Whether the main team waits for the cluster's other blocks before it attends: a row that it attends is made of sums
// that they send.
template <typename Team> NSA_DEVICE bool meets_early(const DecodePlace &place) {
  return Team::kWeighs && place.fresh_key >= 0;
}

template <typename Team> NSA_DEVICE BranchKeys window_keys(const DecodeRing<Team> &ring) {
  return {ring.win_pieces, 0, ring.place.past_token - ring.place.first_token, false, false};
}

// Adds up what all blocks have sent of the window.
template <int32 kFirst, bool kLast, typename Team, typename Arguments>
NSA_DEVICE void add_window(const DecodeResult<Team, Arguments> &result) {
  const Arguments &args = result.args;
  await(result.memory, kWinPartials);
  make_factors(result.memory, kWin, args.scale_log2,
               [&](int32 head, float lse) { result.store_lse(args.lse_win, head, lse); });
  result.template add<kWin, kFirst, kLast>(args.o_win);
}

// The work of the window's team. Its loader fills the ring, and the gates are in shared memory.
template <typename Team, typename Arguments>
NSA_DEVICE void attend_window(const Arguments &args, const DecodePlace &place, const DecodeMemory<Team> &memory) {
  const DecodeRing<Team> ring(place, memory);
  DecodeAttention<Team> attention(ring, args.scale_log2);
  attention.attend(window_keys(ring), token_queries(args, memory),
                   [](const PieceScores<Team> &, const HeadNumbers<Team> &, int32, bool) {});
  cluster_wait(); // the other blocks run and have prepared their barriers
  push_softmax(attention, memory, place.rank, kWin, kWinPartials);
  push_partials(attention, memory, place.rank, kWin, kWinPartials);
  add_window<kWin, false>(DecodeResult<Team, Arguments>{args, place, memory});
  announce_window<Team>();
}

// The work of the main team. The loaders fill the ring, and the gates are in shared memory.
//
// A branch after the other is attended by the same instructions, because instructions are fetched once for a launch:
// code that runs once waits for them.
//
// The list needs maxima and sums of the compressed branch, and not its results. So the results are sent and added up
// when the list is made, and the selected keys are on their way. A main team that attends the window sends its results
// at once, because the window needs the memory of the last pieces. It makes the list behind the window, because the
// maxima and sums come meanwhile. Without a list the selected keys are known, and all is added up behind them.
template <typename Team, typename Arguments>
NSA_DEVICE void attend_branches(const Arguments &args, const DecodePlace &place, const DecodeMemory<Team> &memory,
                                DecodeRing<Team> &ring) {
  constexpr bool kAttendsWin = Team::attends(kWin);
  constexpr int32 kFirst = Team::kHasCmp ? kCmp : kAttendsWin ? kWin : kSel;
  constexpr int32 kLast = Team::kHasSel ? kSel : kAttendsWin ? kWin : kCmp;
  const bool ranks = Team::kRanks && place.ranks;
  constexpr int32 kSelTurn = kAttendsWin ? 3 : 2;
  const int32 turn_of_list = ranks ? kSelTurn - 1 : kSelTurn + 1; // or of the factors alone
  const bool sends_late = ranks && !kAttendsWin;
  unsigned char *queries = token_queries(args, memory);
  DecodeAttention<Team> attention(ring, args.scale_log2);
  PooledScores<Team> pooled(memory, place, attention.at, args.scale_log2);
  const DecodeResult<Team, Arguments> result{args, place, memory};
  const int32 compressed_keys = place.past_key - place.first_key;

#pragma unroll 1
  for (int32 turn = 0; turn <= kSelTurn + 1; ++turn) {
    if (turn == turn_of_list) {
      if (Team::kHasCmp || ranks) {
        await(memory, kCmpSoftmax);
        make_factors(memory, kCmp, args.scale_log2, [&](int32 head, float lse) {
          memory.floats(Team::kNormsAt)[head] = lse == -infinity() ? lse : -lse;
          if constexpr (Team::kHasCmp)
            result.store_lse(args.lse_cmp, head, lse);
        });
      }
      if (ranks) {
        propose_blocks(memory, place, ring.cmp_pieces, args.init_blocks, args.local_blocks);
        await(memory, kProposals);
        make_list(memory, place);
        announce_list<Team>();
        meet<Team>();
        ring.add_selected();
      }
    }

    if (turn == 0 || turn == kSelTurn || (turn == 1 && kAttendsWin)) {
      const int32 branch = turn == 0 ? kCmp : turn == kSelTurn ? kSel : kWin;
      const BranchKeys keys = branch == kCmp   ? BranchKeys{ring.cmp_pieces, place.attended_key - place.first_key,
                                                            compressed_keys, true, false}
                              : branch == kWin ? window_keys(ring)
                                               : BranchKeys{ring.sel_pieces(), 0, ring.sel_keys, false, true};
      attention.attend(keys, branch == kCmp ? memory.queries(kCompressedQueries) : queries,
                       [&](const PieceScores<Team> &s, const HeadNumbers<Team> &tops, int32 piece, bool whole) {
                         if constexpr (Team::kRanks)
                           if (ranks && branch == kCmp)
                             pooled.add(s, tops, piece, whole);
                       });
      if (turn == 0 && !meets_early<Team>(place))
        cluster_wait(); // the other blocks run and have prepared their barriers
      if (Team::attends(branch) || (ranks && branch == kCmp))
        push_softmax(attention, memory, place.rank, branch, softmax_message(branch));
    }

    if (turn == kSelTurn || turn == (sends_late ? 1 : 0) || (turn == 1 && kAttendsWin)) {
      const int32 branch = turn == kSelTurn ? kSel : turn == 1 && kAttendsWin ? kWin : kCmp;
      if (Team::attends(branch))
        push_partials(attention, memory, place.rank, branch, partials_message(branch));
      else
        attention.release();
    }

    if (turn == turn_of_list) {
      if constexpr (Team::kHasCmp) {
        await(memory, kCmpPartials);
        if constexpr (kLast == kCmp && Team::kHasWindowTeam)
          await_window<Team>();
        result.template add<kCmp, kFirst, kLast == kCmp>(args.o_cmp);
      }
      if constexpr (kAttendsWin)
        add_window<kFirst, kLast == kWin>(result);
    }
  }
  if constexpr (Team::kHasSel) {
    await(memory, kSelPartials);
    make_factors(memory, kSel, args.scale_log2,
                 [&](int32 head, float lse) { result.store_lse(args.lse_sel, head, lse); });
    if constexpr (Team::kHasWindowTeam)
      await_window<Team>();
    result.template add<kSel, kFirst, true>(args.o_sel);
  }
}

} // namespace nsa
