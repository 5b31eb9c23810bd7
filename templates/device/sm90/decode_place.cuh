// Where the sequence of a block lies, which of its keys the block attends, and whether its lengths keep the rules.
#pragma once

#include "paged_view.cuh"
#include "sm90/decode_team.cuh"
#include "sm90/ptx_mark.cuh"

namespace nsa {

struct DecodePlace {
  int32 sequence;
  int32 kv_head;
  int32 rank;  // the block's number in its cluster
  int32 code;  // the rule that the sequence breaks, or 0
  bool runs;   // there is a new token for the cluster, and no rule is broken
  int32 token; // the number of the cluster's token among the new ones of its sequence
  int32 added; // new tokens of the sequence
  int32 q_entry;
  int32 q_time;
  int32 k_entry;
  int32 position; // of the token
  // Compressed keys [first_key, past_key) are scored, and those from attended_key on are attended. Keys below 0 do not
  // exist. The block owns the selection blocks [first_block, past_block) of all `blocks` up to the query's own.
  int32 visible;
  int32 fresh_key; // the compressed key that new tokens up to this one complete, or -1
  bool completes;  // this token completes it
  int32 first_key;
  int32 attended_key;
  int32 past_key;
  int32 blocks;
  int32 first_block;
  int32 past_block;
  int32 proposed; // selection blocks that each block proposes for the list
  bool ranks;     // there are more blocks than a list has places
  int32 listed;
  // The block's part of the window.
  int32 first_token;
  int32 past_token;

  NSA_DEVICE int32 cached() const { return position - token; } // tokens in front of the new ones
  // Whether the block owns the new compressed key, and whether it scores it.
  NSA_DEVICE bool owns_fresh(int32 inner) const {
    return fresh_key >= first_block * inner && fresh_key < past_block * inner;
  }
  NSA_DEVICE bool uses_fresh() const { return fresh_key >= 0 && fresh_key >= first_key && fresh_key < past_key; }
  // Whether the block needs the new compressed row: it scores the key, or stores the row.
  NSA_DEVICE bool takes_fresh(int32 inner) const { return uses_fresh() || (completes && owns_fresh(inner)); }
};

// What the lengths in device memory say. They may be anything, so no number is used before it was checked.
struct DecodeLengths {
  int32 tokens; // with the new ones
  int32 added;
  int32 q_first;
  int32 code; // pages excepted
};

// The same checks in the same order as templates/tile/cache_sequences.tile. `meanwhile` is called when the length is on
// its way and not yet used.
template <typename Shape, typename Arguments, typename Meanwhile>
NSA_DEVICE DecodeLengths check_lengths(const Arguments &args, int32 sequence, const Meanwhile &meanwhile) {
  using Facts = typename Shape::Facts;
  const int32 given = load_number(args.cache_seqlens.data + args.cache_seqlens.at(sequence).offset);
  meanwhile();
  int32 first = 0;
  int32 added = args.seqlen_q;
  bool bad_offsets = false;
  if (args.cu_seqlens_q.present()) {
    first = load_scalar(args.cu_seqlens_q, sequence);
    const int32 end = load_scalar(args.cu_seqlens_q, sequence + 1);
    bad_offsets = first < 0 || end < first || first > (sequence == 0 ? 0 : args.total_q) || end > args.total_q;
    added = bad_offsets ? 0 : end - first;
  }
  const bool bad_length = given < 0 || given > args.capacity;
  const int32 length = bad_length ? 0 : given;
  const bool full = added > args.capacity - length;
  const int32 tokens = full ? length : length + added;
  const int32 code = bad_offsets                                            ? Facts::kBadCuSeqlensQ
                     : bad_length                                           ? Facts::kBadCacheSeqlens
                     : added > args.max_seqlen_q                            ? Facts::kSeqlenQOverMaximum
                     : full                                                 ? Facts::kCacheFull
                     : tokens > min(args.max_seqlen_k, int32{Facts::kRoom}) ? Facts::kSeqlenKOverMaximum
                                                                            : 0;
  return {tokens, added, first, code};
}

// The page numbers that one thread of the main team checks. The thread loads them before the length says which of them
// are used, so that both loads wait for memory at the same time. The threads keep the table in shared memory, where
// there is room for it: L1 forgets it when the cluster meets.
template <typename Team> struct DecodePages {
  static constexpr int32 kEntries = Team::kTableEntries;
  static constexpr int32 kAll = (kEntries + Team::kThreads - 1) / Team::kThreads;
  static constexpr int32 kHeld = kAll < 4 ? kAll : 4;

  template <typename Arguments> NSA_DEVICE explicit DecodePages(const Arguments &args) {
    if constexpr (kHeld > 0) {
      const int32 *table = args.block_table.data + args.block_table.at(blockIdx.z, 0).offset;
      const int32 entries = min(args.capacity / max(Team::Facts::kPageSize, 1), kEntries);
#pragma unroll
      for (int32 i = 0; i < kHeld; ++i)
        if (const int32 entry = Team::thread() + i * Team::kThreads; entry < entries)
          held[i] = load_number(table + entry * args.block_table.strides[1]);
    }
  }

  // Returns whether a page of the first `tokens` tokens does not exist, of those that the thread looks at.
  template <typename Arguments>
  NSA_DEVICE bool finds_bad(const Arguments &args, const DecodeMemory<Team> &memory, int32 tokens) const {
    bool bad = false;
    if constexpr (Team::Facts::kPageSize > 0) {
      const int32 past = (tokens - 1) / Team::Facts::kPageSize + 1;
      const auto visit = [&](int32 entry, int32 page) {
        bad |= static_cast<uint32>(page) >= static_cast<uint32>(args.pages);
        if constexpr (kEntries > 0)
          memory.numbers(Team::kTableAt)[entry] = page;
      };
#pragma unroll
      for (int32 i = 0; i < kHeld; ++i)
        if (const int32 entry = Team::thread() + i * Team::kThreads; entry < past)
          visit(entry, held[i]);
      if constexpr (kHeld < kAll || kEntries == 0) {
        const int32 *table = args.block_table.data + args.block_table.at(blockIdx.z, 0).offset;
#pragma unroll 4
        for (int32 entry = Team::thread() + kHeld * Team::kThreads; entry < past; entry += Team::kThreads)
          visit(entry, load_unchanging(table + entry * args.block_table.strides[1]));
      }
    }
    return bad;
  }

private:
  int32 held[kHeld > 0 ? kHeld : 1];
};

// Returns for how many tokens of a sequence the last compressed key is complete, or a number below 1. New tokens
// complete it if this number is greater than that of the others.
template <typename Facts> NSA_DEVICE int32 complete_at(int32 tokens) {
  const int32 behind = tokens - Facts::kCmpBlock;
  return behind < 0 ? 0 : behind / Facts::kCmpStride * Facts::kCmpStride + Facts::kCmpBlock;
}

// The part of the sequence that the block takes. `place` has the numbers of the block and of its token. `tokens` counts
// this token and those in front of it.
template <typename Shape> NSA_DEVICE void divide_keys(DecodePlace &place, int32 tokens, int32 window) {
  using Facts = typename Shape::Facts;
  constexpr int32 kCluster = Shape::kCluster;
  place.position = tokens - 1;
  const int32 visible = max(tokens - (Facts::kCmpBlock - Facts::kCmpStride), 0) / Facts::kCmpStride;
  place.visible = visible;
  const int32 complete = complete_at<Facts>(tokens);
  place.fresh_key = complete > place.cached() ? visible - 1 : -1;
  place.completes = complete == tokens;

  place.blocks = place.position / Facts::kSelBlock + 1;
  place.ranks = Shape::kRanks && place.blocks > Facts::kSelCount;
  place.listed = Shape::kHasSel ? min(place.blocks, Facts::kSelCount) : 0;
  const int32 share = (place.blocks + kCluster - 1) / kCluster;
  place.proposed = min(share, Facts::kSelCount);
  place.first_block = min(place.rank * share, place.blocks);
  place.past_block = min(place.first_block + share, place.blocks);

  const bool scores = (Shape::kHasCmp || place.ranks) && visible > 0;
  const bool owns = place.past_block > place.first_block;
  place.attended_key = place.first_block * Shape::kInner;
  place.first_key = place.attended_key - (place.ranks ? Shape::kBack * Shape::kInner : 0);
  // The last selection blocks of a sequence may have no visible key.
  place.past_key =
      scores && owns ? max(min(place.past_block * Shape::kInner, visible), place.first_key) : place.first_key;

  const int32 width = min(window, tokens);
  const int32 part = (width + kCluster - 1) / kCluster;
  place.first_token = min(tokens - width + place.rank * part, tokens);
  place.past_token = Shape::kHasWin ? min(place.first_token + part, tokens) : place.first_token;
}

// Checks the lengths and computes the place of the block. `meanwhile` is called once.
template <typename Shape, typename Arguments, typename Meanwhile>
NSA_DEVICE DecodePlace find_place(const Arguments &args, const Meanwhile &meanwhile) {
  DecodePlace place = {};
  place.sequence = blockIdx.z;
  place.kv_head = blockIdx.y;
  place.rank = static_cast<int32>(blockIdx.x) % Shape::kCluster;
  place.token = static_cast<int32>(blockIdx.x) / Shape::kCluster;
  const DecodeLengths lengths = check_lengths<Shape>(args, place.sequence, meanwhile);
  const bool packed = args.cu_seqlens_q.present();
  place.code = lengths.code;
  place.added = lengths.added;
  place.runs = lengths.code == 0 && place.token < lengths.added;
  place.q_entry = packed ? 0 : place.sequence;
  place.q_time = (packed ? lengths.q_first : 0) + place.token;
  place.k_entry = place.sequence;
  divide_keys<Shape>(place, place.runs ? lengths.tokens - lengths.added + place.token + 1 : 1, args.window);
  return place;
}

} // namespace nsa
