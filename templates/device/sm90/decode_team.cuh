// The teams of warps of a block, and what lies where in its shared memory.
//
// The main team attends the compressed and the selected keys. The window depends on nothing but the place of the
// sequence, so a team of its own attends it at the same time. Without such a team the main team attends all branches.
// Each team has its own ring of keys, loaders and barriers.
#pragma once

#include "sm90/decode_shape.cuh"

namespace nsa {

// Returns the least common multiple of two numbers above 0.
NSA_DEVICE constexpr int32 least_multiple(int32 a, int32 b) {
  int32 multiple = a;
  while (multiple % b != 0)
    multiple += a;
  return multiple;
}

inline constexpr int32 kPieceKeys = 16; // keys that a warp attends at once: a stage of a ring

// How the warps of a team divide their work, and what the team has for itself in shared memory.
template <typename Facts, bool kIsWindow_> struct TeamShape : DecodeShape<Facts> {
  using Shape = DecodeShape<Facts>;
  static constexpr bool kIsWindow = kIsWindow_;
  static constexpr int32 kWarps = kIsWindow ? Shape::kWindowWarps : Shape::kMainWarps;
  static constexpr int32 kThreads = kWarps * kWarpSize;
  static constexpr int32 kFirstThread = kIsWindow ? Shape::kMainWarps * kWarpSize : 0;
  static constexpr int32 kLoaders = kIsWindow ? Shape::kWindowLoaders : Shape::kMainLoaders;
  // The number of a thread that attends in its team.
  NSA_DEVICE static int32 thread() { return static_cast<int32>(threadIdx.x) - kFirstThread; }

  // The branches that the team attends. The main team reads compressed keys for the list alone, too.
  static constexpr int32 kWindowBit = Shape::kHasWindowTeam ? 1 << kWin : 0;
  static constexpr int32 kBranches = kIsWindow ? kWindowBit : Facts::kBranches & ~kWindowBit;
  NSA_DEVICE static constexpr bool attends(int32 branch) { return kBranches >> branch & 1; }
  static constexpr bool kReadsCompressed = !kIsWindow && Shape::kCompressed;

  // In a cluster of 16 blocks the part of a window of 512 keys is two pieces.
  static constexpr int32 kStages = kIsWindow ? 4 : Facts::kStages;
  static constexpr int32 kPieceBytes = kPieceKeys * (Shape::kKPitch + Shape::kVPitch);
  static constexpr int32 kLeastBytes = 4 * (16 + 8) * Shape::kHeads; // for 16 columns of results
  static constexpr int32 kStageBytes = kPieceBytes > kLeastBytes ? kPieceBytes : kLeastBytes;

  // A warp attends pieces of 16 keys for the heads of a product. The warps of the same heads deal the pieces out among
  // them, one after the other. If all columns of V would take more registers than a thread has, or if there are more
  // warps than stages, some warps attend the same piece: they make the same scores and divide the columns.
  //
  // Without a window's team a thread has registers for 128 columns. Each warp holds a stage while it attends, so wide
  // warps leave fewer stages for pieces that are on their way. On an H200 they are faster in clusters of three blocks
  // with twelve stages, and slower in smaller clusters.
  static constexpr int32 kHeadWarps = kWarps / Shape::kHeadTiles; // for the same heads
  static constexpr bool kAttendsWide = !kIsWindow && attends(kWin) && Shape::kCluster > 2 && kStages > kHeadWarps;
  static constexpr int32 kMostColumns = kAttendsWide ? 128 : Shape::Product::kMostColumns;
  NSA_DEVICE static constexpr int32 column_warps() {
    int32 warps = 1;
    while (warps < kHeadWarps && (Shape::kVPad > warps * kMostColumns || kHeadWarps > warps * kStages))
      warps *= 2;
    return warps;
  }
  static constexpr int32 kColumnWarps = column_warps();
  static constexpr int32 kKeyWarps = kHeadWarps / kColumnWarps;
  static constexpr int32 kReaders = kWarps / kKeyWarps;          // warps that attend the same piece
  static constexpr int32 kColumns = Shape::kVPad / kColumnWarps; // of a warp
  static_assert(kHeadWarps % kColumnWarps == 0 && kColumns % 16 == 0 && kColumns <= 128, "warps divide columns evenly");
  static_assert(kKeyWarps <= kStages, "each warp keeps its last piece of a branch");
  // A warp that attends takes every kKeyWarps-th piece, and a loader every kLoaders-th. Pieces of the same barrier are
  // a multiple of both apart.
  static constexpr int32 kRingBarriers = least_multiple(kStages, least_multiple(kKeyWarps, kLoaders));

  // The warps of a team add up their results of a branch in the memory of the last piece of each, as many columns at a
  // time as fit: a multiple of 16.
  static constexpr int32 kMostMergeColumns = (kStageBytes / (4 * Shape::kHeads) - Shape::Product::kGap) / 16 * 16;
  static constexpr int32 kMergeColumns = kMostMergeColumns < Shape::kVPad ? kMostMergeColumns : Shape::kVPad;
  static constexpr int32 kMergePitch = kMergeColumns + Shape::Product::kGap;

  // Offsets in shared memory of what the team has for itself. The ring comes first. A window has one branch.
  static constexpr int32 kPartBranches = kIsWindow ? 1 : kDecodeBranches;
  static constexpr int32 kPartsInTeam = kStages * kStageBytes; // [branch][key warp][head]
  static constexpr int32 kSourcesInTeam =
      kPartsInTeam + 8 * kPartBranches * kKeyWarps * Shape::kHeads; // [loader][row of a piece]: key, value
  static constexpr int32 kRingBarriersInTeam = kSourcesInTeam + 16 * kLoaders * kPieceKeys;
  static constexpr int32 kTeamBytes = kRingBarriersInTeam + 16 * kRingBarriers;
};

template <typename Facts> NSA_DEVICE constexpr int32 window_team_bytes() {
  if constexpr (DecodeShape<Facts>::kHasWindowTeam)
    return TeamShape<Facts, true>::kTeamBytes;
  else
    return 0;
}

// A team with the offsets in shared memory: the main team has the first bytes, then comes the window's, and then what
// is common.
template <typename Facts, bool kIsWindow> struct DecodeTeam : TeamShape<Facts, kIsWindow> {
  using Shape = DecodeShape<Facts>;
  using Team = TeamShape<Facts, kIsWindow>;
  static constexpr int32 kCluster = Shape::kCluster;
  static constexpr int32 kHeads = Shape::kHeads;
  static constexpr bool kRanks = Shape::kRanks;

  static constexpr int32 kMainBytes = TeamShape<Facts, false>::kTeamBytes;
  static constexpr int32 kRingAt = kIsWindow ? kMainBytes : 0;
  static constexpr int32 kPartsAt = kRingAt + Team::kPartsInTeam;
  static constexpr int32 kSourcesAt = kRingAt + Team::kSourcesInTeam;
  static constexpr int32 kRingBarriersAt = kRingAt + Team::kRingBarriersInTeam;

  static constexpr int32 kQueriesAt = kMainBytes + window_team_bytes<Facts>();
  static constexpr int32 kPartialsAt = kQueriesAt + Shape::kQueryTiles * Shape::kQueryBytes; // [branch][rank][slice]
  static constexpr int32 kSoftmaxAt =
      kPartialsAt + 4 * kDecodeBranches * kCluster * Shape::kSlice;                       // [branch][rank][head]
  static constexpr int32 kNormsAt = kSoftmaxAt + 8 * kDecodeBranches * kCluster * kHeads; // [head]
  static constexpr int32 kGatesAt = kNormsAt + 4 * kHeads;                                // [branch][head]
  static constexpr int32 kPooledAt = kGatesAt + 4 * kDecodeBranches * kHeads; // [head][piece][unit][reached block]
  static constexpr int32 kReferencesAt =
      kPooledAt + (kRanks ? 4 * Shape::kGroup * Shape::kPoolPitch : 0); // [head][piece]
  static constexpr int32 kPastReferences = kReferencesAt + (kRanks ? 4 * Shape::kGroup * Shape::kLocalPieces : 0);
  // Weights are multiplied in front of the branches, in the memory of the scores.
  static constexpr int32 kInputsAt = kPooledAt;                                               // or [warp][column]: sums
  static constexpr int32 kHiddenAt = kInputsAt + Facts::kWorkBytes - 4 * Facts::kHiddenShare; // of a perceptron
  static constexpr int32 kPastWork = kPooledAt + Facts::kWorkBytes;
  static constexpr int32 kBlockScoresAt =
      round_up(kPastWork > kPastReferences ? kPastWork : kPastReferences, 16); // [selection block]
  static constexpr int32 kCandidateScoresAt = kBlockScoresAt + (kRanks ? 4 * round_up(Shape::kShare, 4) : 0);
  static constexpr int32 kCandidateBlocksAt = kCandidateScoresAt + (kRanks ? 4 * round_up(Shape::kCandidates, 4) : 0);
  static constexpr int32 kBestScoresAt = kCandidateBlocksAt + (kRanks ? 4 * round_up(Shape::kCandidates, 4) : 0);
  static constexpr int32 kBestBlocksAt = kBestScoresAt + 4 * Shape::kBest;
  static constexpr int32 kListAt = kBestBlocksAt + 4 * Shape::kBest;
  static constexpr int32 kFreshAt =
      kListAt + (Shape::kHasSel ? 4 * round_up(Facts::kSelCount, 4) : 0); // a new compressed row
  static constexpr int32 kFreshSumsAt =
      kFreshAt + round_up(2 * (Shape::kQkDim + Shape::kVDim), 16);        // [K or V][part of the weights][column]
  static constexpr int32 kTableAt = kFreshSumsAt + Facts::kReceivedBytes; // [page of the sequence]
  static constexpr int32 kTableEntries = Facts::kTableEntries;            // 0: the table is too long to be kept
  static constexpr int32 kBarriersAt = kTableAt + 4 * round_up(kTableEntries, 4);
  static constexpr int32 kBadPageAt = kBarriersAt + 8 * Shape::kMessages; // whether a page does not exist
  static constexpr int32 kUsedBytes = kBadPageAt + 4;
  static_assert(kUsedBytes <= Facts::kSharedBytes, "the header states enough shared memory");
};

// The shared memory of a block by its parts, as a team sees it.
template <typename Team> struct DecodeMemory {
  NSA_DEVICE explicit DecodeMemory(unsigned char *memory) : base(memory) {}

  // What the team has for itself.
  NSA_DEVICE unsigned char *keys(int32 stage) const { return base + Team::kRingAt + stage * Team::kStageBytes; }
  NSA_DEVICE unsigned char *values(int32 stage) const { return keys(stage) + kPieceKeys * Team::kKPitch; }
  // The maximum and the sum of a head over the keys of a warp: two floats.
  NSA_DEVICE float *part(int32 branch, int32 key_warp, int32 head) const {
    const int32 number = Team::kPartBranches == 1 ? key_warp : branch * Team::kKeyWarps + key_warp;
    return floats(Team::kPartsAt) + 2 * (number * Team::kHeads + head);
  }
  // Where the key of a row and its value lie in global memory (DecodeLoader::Address): two numbers. Each loader has
  // kPieceKeys rows.
  NSA_DEVICE uint64 *sources(int32 row) const { return reinterpret_cast<uint64 *>(base + Team::kSourcesAt) + 2 * row; }
  // The mbarriers of a piece: it has come, and it was read (RingPlace).
  NSA_DEVICE unsigned char *full(int32 number) const { return base + Team::kRingBarriersAt + 8 * number; }
  NSA_DEVICE unsigned char *empty(int32 number) const { return full(Team::kRingBarriers + number); }

  // What all teams share.
  NSA_DEVICE unsigned char *queries(int32 tile) const { return base + Team::kQueriesAt + tile * Team::kQueryBytes; }
  NSA_DEVICE float *floats(int32 offset) const { return reinterpret_cast<float *>(base + offset); }
  NSA_DEVICE int32 *numbers(int32 offset) const { return reinterpret_cast<int32 *>(base + offset); }
  NSA_DEVICE float *partials(int32 branch, int32 rank) const {
    return floats(Team::kPartialsAt) + (branch * Team::kCluster + rank) * Team::kSlice;
  }
  // The maximum and the sum of a head: two floats.
  NSA_DEVICE float *softmax(int32 branch, int32 rank, int32 head) const {
    return floats(Team::kSoftmaxAt) + 2 * ((branch * Team::kCluster + rank) * Team::kHeads + head);
  }
  // The weighted sums of powers of a piece's scores, and what they are relative to (PooledScores).
  NSA_DEVICE float *pooled(int32 head, int32 piece) const {
    return floats(Team::kPooledAt) + head * Team::kPoolPitch + piece * Team::kReach;
  }
  NSA_DEVICE float &reference(int32 head, int32 piece) const {
    return floats(Team::kReferencesAt)[head * Team::kLocalPieces + piece];
  }
  NSA_DEVICE int32 *list() const { return numbers(Team::kListAt); }
  NSA_DEVICE unsigned char *fresh() const { return base + Team::kFreshAt; }
  // What the new compressed row takes from a part of the weights of K or of V.
  NSA_DEVICE float *fresh_sums(bool of_keys, int32 part) const {
    return floats(Team::kFreshSumsAt) +
           (of_keys ? part * Team::kQkDim : Team::Facts::kWeightParts * Team::kQkDim + part * Team::kVDim);
  }
  NSA_DEVICE unsigned char *barrier(int32 message) const { return base + Team::kBarriersAt + 8 * message; }

  unsigned char *base;
};

} // namespace nsa
