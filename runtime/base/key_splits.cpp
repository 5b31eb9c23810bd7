#include "runtime/base/key_splits.h"

#include "runtime/base/saturated.h"

#include <algorithm>
#include <bit>

namespace nsa {

namespace {

// Queries of a sequence, up to which keys are shared. A power of two: a bucket of lengths is on one side.
constexpr int64_t kMostQueries = 8;
// The number of programs that fills a large GPU, with four on each multiprocessor; and the least number of keys that a
// program should have.
constexpr int64_t kProgramsWanted = 512;
constexpr int64_t kLeastKeys = 64;
constexpr int64_t kManyShares = 4;
// The most rows that a program of attention takes. A power of two, as buckets are.
constexpr int64_t kMostRows = 128;
constexpr int64_t kManyRows = kProgramsWanted / kManyShares * kMostRows;
constexpr int64_t kSlotGranule = 16;
// Up to this many comparisons of all queries, and up to this many blocks of one query, a second launch costs more than
// it saves. The least segment is made of whole tiles.
constexpr int64_t kFewComparisons = int64_t{1} << 24;
constexpr int64_t kFewBlocks = 512;
constexpr int64_t kLeastSegment = 128;
constexpr int32_t kSegmentInKey = 64;

// The product of `each` and the numbers of sequences, queries and kv heads, but at most `most`: the product itself
// could overflow. `most` is a power of two, as buckets are.
int64_t countUpTo(int64_t most, int64_t each, const Spec &spec, const Maxima &maxima) {
  int64_t result = each;
  for (const int64_t count : {maxima.batch, maxima.seqlenQ, int64_t{spec.kvHeads}})
    result = std::min(result * bucketOf(std::min(count, most)), most);
  return result;
}

// How many programs there are, each with one query of every head of a group. No caller asks about more than
// kFewComparisons.
int64_t programsOf(const Spec &spec, const Maxima &maxima) { return countUpTo(kFewComparisons, 1, spec, maxima); }

} // namespace

bool sharesKeys(const Spec &spec, const Maxima &maxima) {
  return definitionOf(spec.op).hasCache && choosingMaxima(spec, maxima).seqlenQ <= kMostQueries;
}

bool hasManyQueries(const Spec &spec, const Maxima &maxima) {
  return kManyShares * programsOf(spec, maxima) >= kProgramsWanted;
}

int32_t stepTokens(const Spec &spec) {
  const bool compresses = (spec.branches & (kBranchCmp | kBranchSel)) != 0;
  return compresses ? std::min(kStepTokens, spec.cmpStride) : kStepTokens;
}

int64_t stepPairs(const Spec &spec, const Maxima &maxima) {
  constexpr int64_t kMostPairs = 1024;
  return countUpTo(kMostPairs, 1, spec, maxima);
}

int64_t keptOfSegment(const Spec &spec) { return (spec.selCount + kSlotGranule - 1) / kSlotGranule * kSlotGranule; }

int64_t rankSegment(const Spec &spec, const Maxima &ofPlan) {
  const Maxima &maxima = choosingMaxima(spec, ofPlan);
  const int64_t blocks = (bucketOf(maxima.seqlenK) + spec.selBlock - 1) / spec.selBlock;
  if (blocks <= kFewBlocks && blocks * blocks <= kFewComparisons / programsOf(spec, maxima))
    return 0;
  // A segment is as long as all that is kept, so that both steps compare equally much.
  int64_t segment = kLeastSegment;
  while (segment * segment < blocks * keptOfSegment(spec))
    segment *= 2;
  // One segment of all blocks spares `choose` nothing. Lists of up to kSegmentInKey blocks rank it all the same,
  // because the segment is in the keys of their stored choices.
  return spec.selCount > kSegmentInKey && segment >= blocks ? 0 : segment;
}

bool hasManyRows(const Spec &spec, const Maxima &maxima) {
  return countUpTo(kManyRows, spec.group(), spec, maxima) == kManyRows;
}

int64_t weightParts(const Spec &spec, const Maxima &maxima) {
  constexpr int64_t kTile = 64;
  const auto tiles = [](int64_t extent) { return (extent + kTile - 1) / kTile; };
  const bool isMlp = spec.cmpKind == CmpKind::kMlp;
  Saturated programs = 0;
  for (const int64_t dim : {int64_t{spec.qkDim}, int64_t{spec.vDim}}) {
    programs = programs + Saturated(spec.cmpBlock) * tiles(dim) * tiles(isMlp ? spec.mlpHidden : dim);
    if (isMlp)
      programs = programs + Saturated(tiles(spec.mlpHidden)) * tiles(dim);
  }
  Maxima blocks = maxima;
  blocks.seqlenQ = spec.compressedBlocks(bucketOf(maxima.seqlenK));
  const int64_t pairs = countUpTo(kTile * KeySplits::kMost, 1, spec, blocks);
  const int64_t ofAll = std::min(programs.value(), kProgramsWanted);
  const int64_t wanted = (kProgramsWanted + ofAll - 1) / ofAll;
  return std::clamp<int64_t>(std::min(wanted, pairs / kTile), 1, KeySplits::kMost);
}

int64_t GradientParts::ofKeys(const Spec &spec, const Maxima &maxima, int64_t keys) {
  // The first keys have the most queries, so the device needs several waves of programs to be busy to the end.
  constexpr int64_t kTile = 64, kPrograms = 4 * kProgramsWanted;
  Maxima tiles = maxima;
  tiles.seqlenQ = (keys + kTile - 1) / kTile;
  const int64_t programs = countUpTo(kPrograms, 1, spec, tiles);
  const int64_t pairs = bucketOf(maxima.seqlenQ) * spec.group();
  return std::clamp<int64_t>(std::min((kPrograms + programs - 1) / programs, pairs / kTile), 1, KeySplits::kMost);
}

GradientParts GradientParts::make(const Spec &spec, const Maxima &maxima) {
  const OperatorDef &def = definitionOf(spec.op);
  const int64_t tokens = bucketOf(maxima.seqlenK), blocks = spec.compressedBlocks(tokens);
  GradientParts parts;
  if (!def.isGradient())
    return parts;
  if (def.isAttentionGradient() && def.keys != MetKeys::kListed) // sel_bwd has pieces of blocks
    parts.own = ofKeys(spec, maxima, def.fields & kCmpGeometry ? blocks : tokens);
  if (def.hasBranches())
    parts = {.own = ofKeys(spec, maxima, tokens), .cmp = ofKeys(spec, maxima, blocks)};
  if (def.fields & kPhi)
    parts.weights = weightParts(spec, maxima);
  return parts;
}

bool mayTakeSlots(const Spec &spec, const Maxima &maxima) {
  constexpr int64_t kRows = 16, kMostShared = int64_t{64} << 10;
  const auto padded = [](int64_t extent) { return (extent + kRows - 1) / kRows * kRows; };
  const int64_t rowBytes = (padded(spec.qkDim) + padded(spec.vDim)) * dtypeBytes(spec.dtype);
  const int64_t entries = spec.layout == Layout::kPacked ? 1 : bucketOf(maxima.batch);
  const int64_t heads = spec.group() * bucketOf(spec.kvHeads);
  const int64_t queries = kChunkGranule + spareQueries(spec, /*isGpu=*/true);
  // A slot has a gradient in fp32, a mean of keys in the io type and a rest in fp32.
  const int64_t slotBytes = (4 + dtypeBytes(spec.dtype)) * spec.qkDim + 4;
  const Saturated slots = Saturated(entries) * queries * (heads * spec.selCount) * slotBytes;
  return (padded(spec.selBlock) + kRows) * rowBytes <= kMostShared && slots.value() <= kGpuSlotsBytes;
}

bool takesSlots(const Spec &spec, const Maxima &maxima) {
  constexpr int64_t kMostGroup = 4;
  return spec.group() <= kMostGroup && mayTakeSlots(spec, maxima);
}

int64_t indexPlaces(const Spec &spec, const Maxima &maxima) {
  if (spec.layout == Layout::kPacked)
    return (Saturated(maxima.batch) * (maxima.seqlenK / spec.selBlock + 3) + Saturated(maxima.tokensQ) * spec.selCount)
        .value();
  return (maxima.seqlenK + spec.selBlock - 1) / spec.selBlock + 1 + maxima.seqlenQ * spec.selCount;
}

int64_t itemQueries(const Spec &spec, const Maxima &maxima) {
  constexpr int64_t kMostEntries = 1024, kLeastEntries = 64, kItems = 1024;
  const int64_t entries = countUpTo(kItems * kMostEntries, spec.selCount, spec, maxima);
  return std::clamp(static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(entries / kItems))), kLeastEntries,
                    kMostEntries);
}

int64_t slotQueries(const Spec &spec, int64_t item) {
  constexpr uint64_t kMostPairs = 1024, kLeastEntries = 64;
  const uint64_t entries = std::bit_floor(kMostPairs / static_cast<uint64_t>(spec.group()));
  return std::min(item, static_cast<int64_t>(std::max(entries, kLeastEntries)));
}

int64_t piecesOfSequence(const Spec &spec, int64_t item, int64_t queries, int64_t keys) {
  return (keys + spec.selBlock - 1) / spec.selBlock + (queries * spec.selCount + item - 1) / item;
}

int64_t piecesOfAll(const Spec &spec, const Maxima &maxima) {
  const Saturated queries =
      spec.layout == Layout::kPacked ? Saturated(maxima.tokensQ) : Saturated(maxima.batch) * maxima.seqlenQ;
  const int64_t items = (queries * spec.selCount).value() / itemQueries(spec, maxima);
  return (Saturated(maxima.batch) * (maxima.seqlenK / spec.selBlock + 3) + items).value();
}

int64_t indexParts(const Spec &spec, const Maxima &maxima) {
  constexpr int64_t kPrograms = 2048, kLeastQueries = 128, kMostParts = 128;
  if (!(fieldsOf(spec.op) & kSelGeometry))
    return 1;
  Maxima heads = maxima;
  heads.seqlenQ = 1;
  const int64_t programs = countUpTo(kPrograms, 1, spec, heads);
  const int64_t parts = std::min((kPrograms + programs - 1) / programs, bucketOf(maxima.seqlenQ) / kLeastQueries);
  return std::clamp<int64_t>(parts, 1, kMostParts);
}

KeySplits KeySplits::make(const Spec &spec, const Maxima &ofPlan) {
  const Maxima &maxima = choosingMaxima(spec, ofPlan);
  const int64_t tokens = bucketOf(maxima.seqlenK);
  const std::array<int64_t, 3> keys = {spec.compressedBlocks(tokens),
                                       std::min<int64_t>(int64_t{spec.selCount} * spec.selBlock, tokens),
                                       bucketOf(std::min<int64_t>(spec.window, maxima.seqlenK))};
  const bool selects = spec.hasBranch(kBranchSel);
  const std::array<bool, 3> exists = {spec.hasBranch(kBranchCmp) || selects, selects, spec.hasBranch(kBranchWin)};
  const int64_t programs = programsOf(spec, maxima);
  const int64_t wanted = spec.keySplits ? spec.keySplits : (kProgramsWanted + programs - 1) / programs;
  KeySplits splits;
  for (size_t branch = 0; branch < keys.size(); ++branch)
    if (exists[branch])
      splits.counts[branch] = std::clamp<int64_t>(std::min(wanted, keys[branch] / kLeastKeys), 1, kMost);
  return splits;
}

int64_t KeySplits::slots(const Spec &spec) const {
  const int64_t used = (spec.hasBranch(kBranchCmp) ? counts[0] : 0) + counts[1] + counts[2];
  return (used + kSlotGranule - 1) / kSlotGranule * kSlotGranule;
}

} // namespace nsa
