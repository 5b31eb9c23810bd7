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

template <typename Team> NSA_DEVICE BranchKeys window_keys(const DecodeRing<Team> &ring) {
  return {ring.win_tiles, 0, ring.place.past_token - ring.place.first_token, false, false};
}

// The work of the window's team. Its loader fills the ring, and the gates are in shared memory.
template <typename Team, typename Arguments>
NSA_DEVICE void attend_window(const Arguments &args, const DecodePlace &place, const DecodeMemory<Team> &memory) {
  const DecodeRing<Team> ring(place, memory);
  DecodeAttention<Team> attention(ring, args.scale_log2);
  attention.attend(window_keys(ring), token_queries(args, memory), [](const PieceScores &, int32) {});
  cluster_wait(); // the other blocks run and have prepared their barriers
  push_softmax(attention, memory, place.rank, kWin, kWinPartials);
  push_partials(attention, memory, place.rank, kWin, kWinPartials);
  attention.release();
  const DecodeResult<Team, Arguments> result{args, place, memory};
  await(memory, kWinPartials);
  make_factors(memory, kWin, args.scale_log2,
               [&](int32 head, float lse) { result.store_lse(args.lse_win, head, lse); });
  result.add(kWin, kWin, kDecodeBranches, args.o_win);
  announce_window<Team>();
}

// The work of the main team. The loaders fill the ring, and the gates are in shared memory.
//
// Code that runs for the first time waits for its instructions to be fetched, which takes a step more time than
// anything else. So all branches pass through one loop, whose turns do what is due: a turn attends a branch, sends its
// results, and adds up what all blocks have sent of a branch.
//
// The list needs maxima and sums of the compressed branch, and not its results. So the results are sent and added up
// when the list is made, and the selected keys are on their way. Where the team attends the window, it does so before
// it makes the list, because the maxima and sums come meanwhile.
template <typename Team, typename Arguments>
NSA_DEVICE void attend_branches(const Arguments &args, const DecodePlace &place, const DecodeMemory<Team> &memory,
                                DecodeRing<Team> &ring) {
  constexpr bool kAttendsWin = Team::attends(kWin);
  constexpr int32 kFirst = Team::kHasCmp ? kCmp : kAttendsWin ? kWin : kSel;
  constexpr int32 kLast = Team::kHasSel ? kSel : kAttendsWin ? kWin : kCmp;
  constexpr int32 kRest = kDecodeBranches; // the first turn behind those that attend
  const bool ranks = Team::kRanks && place.ranks;
  const int32 turn_of_list = !ranks ? -1 : kAttendsWin ? 2 : 1;
  const int32 turn_of_compressed = ranks && !kAttendsWin ? 1 : kRest; // its results are added up
  unsigned char *queries = token_queries(args, memory);
  DecodeAttention<Team> attention(ring, args.scale_log2);
  const DecodeResult<Team, Arguments> result{args, place, memory};
  const int32 compressed_keys = place.past_key - place.first_key;

#pragma unroll 1
  for (int32 turn = 0; turn < kRest + kDecodeBranches; ++turn) {
    const int32 added = turn <= kRest ? kCmp : turn == kRest + 1 ? kWin : kSel;
    const bool adds = turn == turn_of_compressed || turn > kRest;

    if (turn == turn_of_list || (turn >= kRest && Team::attends(added) && !(added == kCmp && ranks))) {
      await(memory, softmax_message(added));
      const View<float, 3> &lse_of = added == kCmp ? args.lse_cmp : added == kWin ? args.lse_win : args.lse_sel;
      make_factors(memory, added, args.scale_log2, [&](int32 head, float lse) {
        if (added == kCmp)
          memory.floats(Team::kNormsAt)[head] = lse == -infinity() ? lse : -lse;
        if (Team::attends(added))
          result.store_lse(lse_of, head, lse);
      });
    }
    if (turn == turn_of_list) {
      propose_blocks<Team>(memory, place, args.scale_log2, args.init_blocks, args.local_blocks);
      await(memory, kProposals);
      make_list(memory, place);
      announce_list<Team>();
      meet<Team>();
      ring.add_selected();
    }

    if (turn == 0 || turn == 2 || (turn == 1 && kAttendsWin)) {
      const int32 branch = turn == 0 ? kCmp : turn == 1 ? kWin : kSel;
      const BranchKeys keys = branch == kCmp   ? BranchKeys{ring.cmp_tiles, place.attended_key - place.first_key,
                                                            compressed_keys, true, false}
                              : branch == kWin ? window_keys(ring)
                                               : BranchKeys{ring.sel_tiles(), 0, ring.sel_keys, false, true};
      attention.attend(keys, branch == kCmp ? memory.queries(kCompressedQueries) : queries,
                       [&](const PieceScores &s, int32 key) {
                         if (ranks && branch == kCmp)
                           keep_scores<Team>(s, memory, attention.at, key, compressed_keys);
                       });
      if (turn == 0)
        cluster_wait(); // the other blocks run and have prepared their barriers
      if (Team::attends(branch) || (ranks && branch == kCmp))
        push_softmax(attention, memory, place.rank, branch, softmax_message(branch));
    }

    if (turn == 2 || (turn == 1 && kAttendsWin) || turn == (turn_of_compressed == 1 ? 1 : 0)) {
      const int32 branch = turn == 2 ? kSel : turn == 1 && kAttendsWin ? kWin : kCmp;
      if (Team::attends(branch))
        push_partials(attention, memory, place.rank, branch, partials_message(branch));
      attention.release();
    }

    if (adds && Team::attends(added)) {
      await(memory, partials_message(added));
      if (Team::kHasWindowTeam && added == kLast)
        await_window<Team>();
      const View<typename Team::Element, 3> &single = added == kCmp   ? args.o_cmp
                                                      : added == kWin ? args.o_win
                                                                      : args.o_sel;
      result.add(added, kFirst, kLast, single);
    }
  }
}

} // namespace nsa
