// The sizes of decode_step's kernel that all warps of a block share. The sizes of its teams, and what lies where in
// shared memory, are in decode_team.cuh.
//
// The template parameter Facts holds the constants of the header of templates/cuda/sm90/decode_step.cu.
#pragma once

#include "sm90/decode_product.cuh"

namespace nsa {

// The branches, in the order of the gates.
enum DecodeBranch : int32 { kCmp = 0, kSel = 1, kWin = 2, kDecodeBranches = 3 };

// The tiles of queries. A kernel without compressed keys has the first alone.
enum DecodeQueryTile : int32 { kTokenQueries = 0, kCompressedQueries = 1 };

// The mbarriers of a block that count the bytes of one kind of message from the blocks of the cluster. Each is used
// once.
enum DecodeMessage : int32 {
  kCmpSoftmax,  // maxima and sums of the compressed branch
  kCmpPartials, // its results
  kProposals,   // the best selection blocks of each block
  kWinPartials, // maxima, sums and results of the window
  kSelPartials, // the same of the selected branch
  kFreshSums,   // what the blocks have of a compressed row that is made with weights
  kDecodeMessages
};

NSA_DEVICE constexpr int32 round_up(int32 value, int32 unit) { return (value + unit - 1) / unit * unit; }

template <typename Facts_> struct DecodeShape {
  using Facts = Facts_;
  using Element = typename Facts::Element;

  // The warps of a block in their order: those of the main team, of the window's team if there is one, the loaders of
  // both (decode_loader.cuh), and the clerk, who keeps the books of the cache (decode_append.cuh).
  //
  // A block without a window's team has three loaders. Beside a window's team the main team has two. Groups of up to
  // eight heads need few instructions for a piece, so there the main team has three loaders, and the window's team has
  // two warps.
  static constexpr bool kHasWindowTeam = Facts::kWindowTeam != 0;
  static constexpr bool kFewHeads = Facts::kGroup <= 8;
  static constexpr int32 kMainWarps = 8;
  static constexpr int32 kWindowWarps = !kHasWindowTeam ? 0 : kFewHeads ? 2 : 4;
  static constexpr int32 kAttendingThreads = (kMainWarps + kWindowWarps) * kWarpSize;
  static constexpr int32 kMainLoaders = kHasWindowTeam && !kFewHeads ? 2 : 3;
  static constexpr int32 kWindowLoaders = kHasWindowTeam ? 1 : 0;
  static constexpr int32 kClerk = kMainWarps + kWindowWarps + kMainLoaders + kWindowLoaders;
  static constexpr int32 kAllThreads = (kClerk + 1) * kWarpSize;
  static_assert(kAllThreads == Facts::kAllThreads, "the header states how many threads a block has");

  static constexpr int32 kCluster = Facts::kCluster;
  // Neighbouring lanes that hold a number of each block each: the next power of two, because shuffles exchange by it.
  static constexpr int32 kRankLanes = kCluster > 8 ? 16 : kCluster > 4 ? 8 : kCluster > 2 ? 4 : kCluster;
  static constexpr int32 kGroup = Facts::kGroup;
  static constexpr int32 kQkDim = Facts::kQkDim;
  static constexpr int32 kVDim = Facts::kVDim;

  // A warp multiplies with 16 query heads, or with all of a group of up to eight. A row of K is padded to a multiple of
  // 32 columns, and a row of V to a multiple of 64, which the warps divide.
  using Product = typename OrientationOf<kGroup>::Type;
  static constexpr int32 kHeads = Facts::kHeads;
  static constexpr int32 kHeadTiles = kHeads / Product::kHeads;
  static constexpr int32 kQkPad = Facts::kQkPad;
  static constexpr int32 kVPad = Facts::kVPad;

  // Rows of a piece in shared memory lie 16 bytes further apart than their length. So the eight rows that ldmatrix
  // reads at once lie in different banks.
  static constexpr int32 kKPitch = 2 * kQkPad + 16;
  static constexpr int32 kVPitch = 2 * kVPad + 16;

  static constexpr bool kWeighs = Facts::kWeighs != 0; // compressed rows are made with weights
  static constexpr int32 kMessages = kWeighs ? kDecodeMessages : kFreshSums;

  static constexpr bool kHasCmp = Facts::kBranches % 2 != 0;
  static constexpr bool kHasSel = Facts::kBranches / 2 % 2 != 0;
  static constexpr bool kHasWin = Facts::kBranches / 4 % 2 != 0;

  // Compressed blocks that begin in a selection block, and those that begin before it and reach into it.
  static constexpr int32 kInner = Facts::kInner;
  static constexpr int32 kBefore = Facts::kBefore;
  // Whether a sequence of the plan can have more selection blocks than a list has places. Blocks of a cluster divide
  // the selection blocks among them.
  static constexpr bool kRanks = Facts::kRanks != 0;
  static constexpr bool kCompressed = kHasCmp || kRanks; // compressed keys are read
  static constexpr int32 kShare = Facts::kShare;
  static constexpr int32 kBack = Facts::kBack; // selection blocks that a compressed key may reach behind its own
  static constexpr int32 kUnit = Facts::kUnit; // compressed keys that reach the same selection blocks
  static constexpr int32 kLocalPieces = Facts::kLocalPieces; // of compressed keys that a block scores
  static constexpr int32 kReach = Facts::kReach;             // sums of a piece: [unit][reached selection block]
  static constexpr int32 kPoolPitch = Facts::kPoolPitch;
  static constexpr int32 kKept = Facts::kKept; // selection blocks that a block proposes for the list
  static constexpr int32 kCandidates = kCluster * kKept;
  // A block may own more selection blocks than it proposes.
  static constexpr bool kGathers = kRanks && Facts::kGathers != 0;
  static constexpr int32 kBest = kGathers ? Facts::kBest : 0; // selection blocks that may be compared

  // Each block adds up a slice of the elements [head, column] of the result.
  static constexpr int32 kResults = kGroup * kVDim;
  static constexpr int32 kSlice = Facts::kSlice;

  static constexpr int32 kQueryBytes = kHeads * kKPitch;
  static constexpr int32 kQueryTiles = kCompressed ? 2 : 1; // q_cmp has a tile of its own
};

} // namespace nsa
