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

  // Query heads are the rows of a product, 16 in an instruction. Warps divide the keys of a tile by eights for scores,
  // and the columns of V by eights for the result. So a row of K is padded to whole loads of 32 columns, and a row of V
  // to 64 columns.
  static constexpr int32 kHeads = Facts::kHeads;
  static constexpr int32 kHeadTiles = kHeads / kSlabRows;
  static constexpr int32 kQkPad = Facts::kQkPad;
  static constexpr int32 kVPad = Facts::kVPad;
  static constexpr int32 kVTiles = kVPad / (8 * kWarps);

  // A small tile of keys has fewer eights of keys than there are warps. There each warp takes a part of the heads.
  static constexpr int32 kKeyTile = Facts::kKeyTile;
  static constexpr int32 kKeyWarps = kKeyTile / 8;
  static constexpr int32 kHeadWarps = kWarps / kKeyWarps;
  static constexpr int32 kScoreTiles = kHeadTiles / kHeadWarps;
  static_assert(kKeyTile == 32 || kKeyTile == 64, "warps divide the keys of a tile by eights");
  static_assert(kHeadTiles % kHeadWarps == 0, "warps divide the heads of a small tile evenly");

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

  // Rows of a tile in shared memory lie 16 bytes further apart than their length. So the eight rows that ldmatrix reads
  // at once lie in different banks.
  static constexpr int32 kKPitch = 2 * kQkPad + 16;
  static constexpr int32 kVPitch = 2 * kVPad + 16;
  static constexpr int32 kWeightPitch = 2 * kKeyTile + 16;
  static constexpr int32 kStageBytes = kKeyTile * (kKPitch + kVPitch);
  static constexpr int32 kQueryBytes = kHeads * kKPitch;
  static constexpr int32 kQueryTiles = kCompressed ? 2 : 1; // q_cmp has a tile of its own

  // Offsets in shared memory.
  static constexpr int32 kQueriesAt = kStages * kStageBytes;
  static constexpr int32 kWeightsAt = kQueriesAt + kQueryTiles * kQueryBytes;
  static constexpr int32 kPartialsAt = kWeightsAt + kHeads * kWeightPitch;                   // [branch][rank][slice]
  static constexpr int32 kSoftmaxAt = kPartialsAt + 4 * kDecodeBranches * kCluster * kSlice; // [branch][rank][head]
  static constexpr int32 kTopsAt = kSoftmaxAt + 8 * kDecodeBranches * kCluster * kHeads;     // [head][key warp]
  static constexpr int32 kSumsAt = kTopsAt + 4 * kHeads * kKeyWarps;                         // [branch][key warp][head]
  static constexpr int32 kMaximaAt = kSumsAt + 4 * kDecodeBranches * kHeads * kKeyWarps;     // [branch][head]
  static constexpr int32 kNormsAt = kMaximaAt + 4 * kDecodeBranches * kHeads;                // [head]
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
  NSA_DEVICE unsigned char *weights() const { return base + Shape::kWeightsAt; }
  NSA_DEVICE float *floats(int32 offset) const { return reinterpret_cast<float *>(base + offset); }
  NSA_DEVICE int32 *numbers(int32 offset) const { return reinterpret_cast<int32 *>(base + offset); }
  NSA_DEVICE float *partials(int32 branch, int32 rank) const {
    return floats(Shape::kPartialsAt) + (branch * Shape::kCluster + rank) * Shape::kSlice;
  }
  // The maximum and the sum of a head: two floats.
  NSA_DEVICE float *softmax(int32 branch, int32 rank, int32 head) const {
    return floats(Shape::kSoftmaxAt) + 2 * ((branch * Shape::kCluster + rank) * Shape::kHeads + head);
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
