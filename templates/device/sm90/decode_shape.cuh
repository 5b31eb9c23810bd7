// The sizes of decode_step's kernel, and what lies where in the shared memory of a block.
//
// The template parameter Facts holds the constants of the header of templates/cuda/sm90/decode_step.cu.
#pragma once

#include "layout.cuh"

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
  kDecodeMessages
};

inline constexpr int32 kPieceKeys = 16; // keys of a tile that a warp attends at once

NSA_DEVICE constexpr int32 round_up(int32 value, int32 unit) { return (value + unit - 1) / unit * unit; }

template <typename Facts_> struct DecodeShape {
  using Facts = Facts_;
  using Element = typename Facts::Element;

  // Eight warps attend. Two warps, the loaders, fill the ring of keys (decode_loader.cuh). The last warp, the clerk,
  // keeps the books of the cache (decode_append.cuh).
  static constexpr int32 kWarps = 8;
  static constexpr int32 kThreads = kWarps * kWarpSize;
  static constexpr int32 kLoaders = 2;
  static constexpr int32 kAllThreads = kThreads + (kLoaders + 1) * kWarpSize;

  static constexpr int32 kCluster = Facts::kCluster;
  static constexpr int32 kStages = Facts::kStages;
  static constexpr int32 kGroup = Facts::kGroup;
  static constexpr int32 kQkDim = Facts::kQkDim;
  static constexpr int32 kVDim = Facts::kVDim;

  // Query heads are the rows of a product, 16 in an instruction. A row of K is padded to a multiple of 32 columns, and
  // a row of V to a multiple of 64, which the warps divide.
  static constexpr int32 kHeads = Facts::kHeads;
  static constexpr int32 kHeadTiles = kHeads / kSlabRows;
  static constexpr int32 kQkPad = Facts::kQkPad;
  static constexpr int32 kVPad = Facts::kVPad;

  // Rows of a tile in shared memory lie 16 bytes further apart than their length. So the eight rows that ldmatrix reads
  // at once lie in different banks.
  static constexpr int32 kKPitch = 2 * kQkPad + 16;
  static constexpr int32 kVPitch = 2 * kVPad + 16;
  static constexpr int32 kKeyTile = Facts::kKeyTile;
  static constexpr int32 kStageBytes = kKeyTile * (kKPitch + kVPitch);

  // A warp attends pieces of 16 keys of a tile for 16 heads. As many warps as a tile has pieces divide the keys among
  // them. Warps that are left divide the columns of V, and make the same scores. If 16 heads of a whole row of V would
  // take more registers than a thread has, or if a tile has no room for the results of all warps that divide the keys,
  // half as many divide the keys, and more the columns.
  static constexpr int32 kPieces = kKeyTile / kPieceKeys;
  static constexpr int32 kMostKeyWarps = kPieces < kWarps / kHeadTiles ? kPieces : kWarps / kHeadTiles;
  static constexpr bool kWide = kVPad * kHeadTiles * kMostKeyWarps / kWarps > 128;
  static constexpr bool kCrowded = kStageBytes < 4 * kMostKeyWarps * kHeads * (16 + 8);
  static constexpr int32 kKeyWarps = kWide || kCrowded ? kMostKeyWarps / 2 : kMostKeyWarps;
  static constexpr int32 kColumnWarps = kWarps / (kHeadTiles * kKeyWarps);
  static constexpr int32 kColumns = kVPad / kColumnWarps; // of a warp
  static_assert(kPieces % kKeyWarps == 0 && kColumns % 16 == 0 && kColumns <= 128, "warps divide a tile evenly");

  static constexpr bool kHasCmp = Facts::kBranches % 2 != 0;
  static constexpr bool kHasSel = Facts::kBranches / 2 % 2 != 0;
  static constexpr bool kHasWin = Facts::kBranches / 4 % 2 != 0;
  NSA_DEVICE static bool has(int32 branch) { return Facts::kBranches >> branch & 1; }

  // Compressed blocks that begin in a selection block, and those that begin before it and reach into it.
  static constexpr int32 kInner = Facts::kInner;
  static constexpr int32 kBefore = Facts::kBefore;
  // Whether a sequence of the plan can have more selection blocks than a list has places. Blocks of a cluster divide
  // the selection blocks among them.
  static constexpr bool kRanks = Facts::kRanks != 0;
  static constexpr bool kCompressed = kHasCmp || kRanks; // compressed keys are read
  static constexpr int32 kShare = Facts::kShare;
  static constexpr int32 kLocalKeys = Facts::kLocalKeys; // compressed keys whose scores a block keeps
  static constexpr int32 kScorePitch = Facts::kScorePitch;
  static constexpr int32 kKept = Facts::kKept; // selection blocks that a block proposes for the list
  static constexpr int32 kCandidates = kCluster * kKept;

  // Each block adds up a slice of the elements [head, column] of the result.
  static constexpr int32 kResults = kGroup * kVDim;
  static constexpr int32 kSlice = Facts::kSlice;

  static constexpr int32 kQueryBytes = kHeads * kKPitch;
  static constexpr int32 kQueryTiles = kCompressed ? 2 : 1; // q_cmp has a tile of its own

  // The warps of a block add up their results of a branch in the memory of its last tile, as many columns at a time as
  // fit: a multiple of 16. Rows lie eight numbers further apart than their length. So the four rows that half a warp
  // stores at once, eight numbers of each, lie in different banks.
  static constexpr int32 kMostMergeColumns = (kStageBytes / (4 * kKeyWarps * kHeads) - 8) / 16 * 16;
  static constexpr int32 kMergeColumns = kMostMergeColumns < kVPad ? kMostMergeColumns : kVPad;
  static constexpr int32 kMergePitch = kMergeColumns + 8;
  static_assert(kMergeColumns > 0, "a tile has room for the results of all warps");

  // Offsets in shared memory.
  static constexpr int32 kQueriesAt = kStages * kStageBytes;
  static constexpr int32 kPartialsAt = kQueriesAt + kQueryTiles * kQueryBytes;               // [branch][rank][slice]
  static constexpr int32 kSoftmaxAt = kPartialsAt + 4 * kDecodeBranches * kCluster * kSlice; // [branch][rank][head]
  static constexpr int32 kPartsAt = kSoftmaxAt + 8 * kDecodeBranches * kCluster * kHeads;    // [branch][key warp][head]
  static constexpr int32 kNormsAt = kPartsAt + 8 * kDecodeBranches * kKeyWarps * kHeads;     // [head]
  static constexpr int32 kGatesAt = kNormsAt + 4 * kHeads;                                   // [branch][head]
  static constexpr int32 kScoresAt = kGatesAt + 4 * kDecodeBranches * kHeads;                // [head][compressed key]
  static constexpr int32 kImportanceAt = kScoresAt + (kRanks ? 4 * kGroup * kScorePitch : 0); // [compressed key]
  static constexpr int32 kBlockScoresAt = kImportanceAt + (kRanks ? 4 * kScorePitch : 0);     // [selection block]
  static constexpr int32 kCandidateScoresAt = kBlockScoresAt + (kRanks ? 4 * round_up(kShare, 4) : 0);
  static constexpr int32 kCandidateBlocksAt = kCandidateScoresAt + (kRanks ? 4 * round_up(kCandidates, 4) : 0);
  static constexpr int32 kListAt = kCandidateBlocksAt + (kRanks ? 4 * round_up(kCandidates, 4) : 0);
  static constexpr int32 kFreshAt = kListAt + (kHasSel ? 4 * round_up(Facts::kSelCount, 4) : 0); // a new compressed row
  static constexpr int32 kTableAt = kFreshAt + round_up(2 * (kQkDim + kVDim), 16); // [page of the sequence]
  static constexpr int32 kTableEntries = Facts::kTableEntries;                   // 0: the table is too long to be kept
  static constexpr int32 kSourcesAt = kTableAt + 4 * round_up(kTableEntries, 4); // [row of a tile]: key, value
  static constexpr int32 kBarriersAt = kSourcesAt + 16 * kKeyTile;
  static constexpr int32 kUsedBytes = kBarriersAt + 8 * (kDecodeMessages + 2 * kStages);
  static_assert(kUsedBytes <= Facts::kSharedBytes, "the header states enough shared memory");
};

// The shared memory of a block by its parts.
template <typename Shape> struct DecodeMemory {
  NSA_DEVICE explicit DecodeMemory(unsigned char *memory) : base(memory) {}

  NSA_DEVICE unsigned char *keys(int32 stage) const { return base + stage * Shape::kStageBytes; }
  NSA_DEVICE unsigned char *values(int32 stage) const { return keys(stage) + Shape::kKeyTile * Shape::kKPitch; }
  NSA_DEVICE unsigned char *queries(int32 tile) const { return base + Shape::kQueriesAt + tile * Shape::kQueryBytes; }
  NSA_DEVICE float *floats(int32 offset) const { return reinterpret_cast<float *>(base + offset); }
  NSA_DEVICE int32 *numbers(int32 offset) const { return reinterpret_cast<int32 *>(base + offset); }
  NSA_DEVICE float *partials(int32 branch, int32 rank) const {
    return floats(Shape::kPartialsAt) + (branch * Shape::kCluster + rank) * Shape::kSlice;
  }
  // The maximum and the sum of a head: two floats.
  NSA_DEVICE float *softmax(int32 branch, int32 rank, int32 head) const {
    return floats(Shape::kSoftmaxAt) + 2 * ((branch * Shape::kCluster + rank) * Shape::kHeads + head);
  }
  // The maximum and the sum of a head over the keys of a warp: two floats.
  NSA_DEVICE float *part(int32 branch, int32 key_warp, int32 head) const {
    return floats(Shape::kPartsAt) + 2 * ((branch * Shape::kKeyWarps + key_warp) * Shape::kHeads + head);
  }
  NSA_DEVICE int32 *list() const { return numbers(Shape::kListAt); }
  NSA_DEVICE unsigned char *fresh() const { return base + Shape::kFreshAt; }
  // Where the row of a tile and its value lie in global memory (DecodeLoader::Address): two numbers.
  NSA_DEVICE uint64 *sources(int32 row) const { return reinterpret_cast<uint64 *>(base + Shape::kSourcesAt) + 2 * row; }
  NSA_DEVICE unsigned char *barrier(int32 message) const { return base + Shape::kBarriersAt + 8 * message; }
  // The mbarriers of a stage of the ring: its tile has come, and its tile was read.
  NSA_DEVICE unsigned char *full(int32 stage) const { return barrier(kDecodeMessages + stage); }
  NSA_DEVICE unsigned char *empty(int32 stage) const { return barrier(kDecodeMessages + Shape::kStages + stage); }

  unsigned char *base;
};

} // namespace nsa
