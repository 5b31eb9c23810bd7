#include "runtime/engine/graph/workspace.h"

#include "runtime/base/key_splits.h"
#include "runtime/base/sequence_fields.h"
#include "runtime/base/signature.h"
#include "runtime/engine/graph/pipeline.h"

#include <algorithm>

namespace nsa {

namespace {

using Rows = GraphBuffer::Rows;

// Scores of a query stand in rows that tiles read whole.
constexpr int64_t kWidestTile = 128;

int64_t roundUp(int64_t value, int64_t granule) { return (value + granule - 1) / granule * granule; }

int64_t scoreBlocks(const Spec &spec, const Maxima &maxima) {
  return (maxima.seqlenK + spec.selBlock - 1) / spec.selBlock;
}

// Scores that `rank` leaves of a query's blocks.
int64_t keptScores(const Spec &spec, const Maxima &maxima) {
  const int64_t segment = rankSegment(spec, maxima);
  return segment ? (scoreBlocks(spec, maxima) + segment - 1) / segment * keptOfSegment(spec) : 0;
}

// The extents of the arrays of a graph, where a plan's maxima allow most.
struct Extents {
  const Spec &spec;
  const Maxima &maxima;
  const ShareRanges &shares;
  GradientParts parts{};
  int64_t chunkRows = 0;

  bool isPacked() const { return spec.layout == Layout::kPacked; }
  Saturated entries() const { return isPacked() ? 1 : maxima.batch; }
  // Queries of each sequence in the dense layout, and of all sequences in the packed one.
  int64_t times() const { return std::max<int64_t>(isPacked() ? maxima.tokensQ : maxima.seqlenQ, 1); }
  Saturated queries() const {
    return isPacked() ? Saturated(maxima.tokensQ) : Saturated(maxima.batch) * maxima.seqlenQ;
  }

  Saturated rows(Rows kind) const {
    switch (kind) {
    case Rows::kSequences:
      return maxima.batch;
    case Rows::kEntries:
      return entries();
    case Rows::kCompressed:
      return Saturated(maxima.batch) * spec.compressedBlocks(maxima.seqlenK);
    case Rows::kKeys:
      return Saturated(maxima.batch) *
             (fieldsOf(spec.op) & kCmpGeometry ? spec.compressedBlocks(maxima.seqlenK) : maxima.seqlenK);
    case Rows::kTokens:
      return Saturated(maxima.batch) * maxima.seqlenK;
    case Rows::kPieces:
      return Saturated(piecesOfAll(spec, maxima)) * spec.selBlock;
    case Rows::kStaged: // all new tokens, and for each sequence the tokens of an unfinished block
      return queries() + Saturated(maxima.batch) * (spec.cmpBlock - 1);
    case Rows::kChunk:
      return entries() * chunkRows;
    case Rows::kQueries:
    case Rows::kTimes:
      return queries();
    case Rows::kWeights:
      return Saturated(spec.cmpBlock) * (int64_t{spec.qkDim} + spec.vDim) + 2 * hidden();
    case Rows::kBiases:
      return 4; // of the first product of keys and of values, and of the second one
    }
    return 0;
  }

  int64_t hidden() const { return spec.cmpKind == CmpKind::kMlp ? spec.mlpHidden : 0; }

  int64_t heads(GraphBuffer::Heads kind) const {
    using enum GraphBuffer::Heads;
    switch (kind) {
    case kNone:
      return 1;
    case kQuery:
      return spec.queryHeads;
    case kKv:
      return spec.kvHeads;
    case kKvWithRests:
      return spec.dtype == DType::kF32 ? int64_t{spec.kvHeads} : int64_t{2} * spec.kvHeads;
    }
    return 0;
  }

  int64_t columns(GraphBuffer::Columns kind) const {
    using enum GraphBuffer::Columns;
    switch (kind) {
    case kOne:
      return 1;
    case kTableFields:
      return kSequenceFields;
    case kQkDim:
      return spec.qkDim;
    case kVDim:
      return spec.vDim;
    case kSelCount:
      return spec.selCount;
    case kShareSlots:
      return ShareRanges::kSlots;
    case kScoreBlocks:
      return roundUp(scoreBlocks(spec, maxima), kWidestTile);
    case kKeptBlocks:
      return roundUp(keptScores(spec, maxima), kWidestTile);
    case kHidden:
      return hidden();
    case kWeights:
      return std::max({int64_t{spec.qkDim}, int64_t{spec.vDim}, hidden()});
    case kIndex:
      return indexPlaces(spec, maxima);
    case kMarks:
      return 2 * kStepTokens;
    case kSlotRows:
      return spec.dqSlots ? int64_t{spec.selCount} * spec.qkDim : 0;
    case kRestSlots:
      return spec.dqSlots ? spec.selCount : 0;
    }
    return 0;
  }

  int64_t copies(GraphBuffer::Copies kind) const {
    using enum GraphBuffer::Copies;
    switch (kind) {
    case kOne:
      return 1;
    case kTwo:
      return 2;
    case kSplits:
      return shares.counts[0] + shares.counts[1] + shares.counts[2];
    case kCmpSplits:
      return shares.counts[0];
    case kQueryParts:
      return parts.own;
    case kCmpQueryParts:
      return parts.cmp;
    case kWeightParts:
      return parts.weights;
    case kIndexParts:
      return indexParts(spec, maxima);
    }
    return 0;
  }
};

// A row of each buffer, in the order of Graph::buffers.
struct GraphRows {
  std::array<int64_t, kBuffers> columns, elements, bytes;
};

// Returns the rows of a chunk in memory, of each sequence in the dense layout.
int64_t chunkRowsOf(const Graph &graph, const Extents &extents, const GraphRows &rows, bool isGpu) {
  const int64_t time = extents.times();
  if (!graph.isChunked())
    return time;
  // Branches that are off count too, so that chunks do not depend on them.
  Saturated perQuery = 0;
  for (size_t i = 0; i < graph.buffers.size(); ++i)
    if (graph.buffers[i].rows == Rows::kChunk)
      perQuery = perQuery + rows.bytes[i];
  if (perQuery.value() == 0)
    return time;
  perQuery = perQuery * extents.entries();
  const int64_t ofGpu = extents.spec.dqSlots ? kGpuSlotsBytes : kGpuChunkBytes;
  const int64_t most = (isGpu ? ofGpu : kCpuChunkBytes) / perQuery.value() / kChunkGranule * kChunkGranule;
  return std::min(time, std::max(most, kChunkGranule + spareQueries(extents.spec, isGpu)));
}

} // namespace

ShareRanges::ShareRanges(const Spec &spec, const Maxima &maxima) : counts(KeySplits::make(spec, maxima).counts) {
  // What adds to the output comes first: the compressed branch may serve the selection alone.
  const bool adds = spec.hasBranch(kBranchCmp);
  int64_t next = 0;
  for (size_t branch = 0; branch < counts.size(); ++branch) {
    first[branch] = next;
    if (branch != 0 || adds)
      next += counts[branch];
    past[branch] = next;
  }
  if (!adds)
    first[0] = next;
}

void WorkspaceLayout::place(size_t &offset, Saturated size) {
  offset = std::min(workspaceAligned(bytes), kMostBytes);
  bytes = offset + std::min(static_cast<size_t>(size.value()), kMostBytes - offset);
}

void WorkspaceLayout::assign(const Spec &spec, const Maxima &maxima, size_t scratchBytes, bool isGpu) {
  const Graph &graph = graphOf(spec, maxima);
  bytes = scratchBytes;
  definitionScratch = 0;
  compared = {};
  present = 0;
  uint64_t roles = 0;
  for (const GraphNode &node : graph.nodes)
    if (node.isIn(spec, maxima))
      roles |= uint64_t{1} << static_cast<int>(node.role);
  shares = graph.isOfFew ? ShareRanges(spec, maxima) : ShareRanges();
  parts = GradientParts::make(spec, maxima);
  indexParts = nsa::indexParts(spec, maxima);
  Extents extents{.spec = spec, .maxima = maxima, .shares = shares, .parts = parts};
  const ElementTypes types = spec.types();
  const auto isMade = [&](const GraphBuffer &buffer) {
    return (roles >> static_cast<int>(buffer.maker) & 1) != 0 && buffer.isNeededBy(spec);
  };
  GraphRows row;
  for (size_t i = 0; i < graph.buffers.size(); ++i) {
    const GraphBuffer &buffer = graph.buffers[i];
    if (!graph.isChunked() && !isMade(buffer)) // the size of a chunk counts branches that are off
      continue;
    row.columns[i] = extents.columns(buffer.columns);
    row.elements[i] = (Saturated(extents.heads(buffer.heads)) * row.columns[i]).value();
    row.bytes[i] = (Saturated(row.elements[i]) * dtypeBytes(types.of(buffer.role))).value();
  }
  chunkRows = chunkRowsOf(graph, extents, row, isGpu);
  chunk = chunkRows == extents.times() ? chunkRows : chunkRows - spareQueries(spec, isGpu);
  extents.chunkRows = chunkRows;
  compRows = extents.isPacked() ? extents.rows(Rows::kCompressed).value() : 0;
  for (size_t i = 0; i < graph.buffers.size(); ++i) {
    const GraphBuffer &buffer = graph.buffers[i];
    if (!isMade(buffer))
      continue;
    const auto index = static_cast<size_t>(buffer.buffer);
    present |= uint64_t{1} << index;
    Placed &at = placed[index];
    const Saturated rows = extents.rows(buffer.rows);
    at.role = buffer.role;
    at.rows = buffer.rows;
    at.columns = row.columns[i];
    at.row = row.elements[i];
    at.copy = (rows * row.elements[i]).value();
    place(at.offset, rows * row.bytes[i] * extents.copies(buffer.copies));
  }
}

Status WorkspaceLayout::check(const Maxima &maxima) const {
  if (bytes < kMostBytes)
    return Status::ok();
  return Status::invalid(
      "maxima",
      "max_batch=" + std::to_string(maxima.batch) + " max_tokens_q=" + std::to_string(maxima.tokensQ) +
          " max_seqlen_q=" + std::to_string(maxima.seqlenQ) + " max_seqlen_k=" + std::to_string(maxima.seqlenK),
      "the workspace, with the spec's heads and dimensions, must be below 2^62 bytes",
      "split the batch into several calls");
}

void WorkspaceLayout::addComparison(const Spec &spec, const Maxima &maxima, std::span<const Step> steps,
                                    size_t definitionBytes) {
  if (steps.empty())
    return;
  const Extents extents{.spec = spec, .maxima = maxima, .shares = shares, .chunkRows = chunkRows};
  int64_t most = 0;
  for (const Step &each : steps) {
    const Spec &step = each.spec;
    Saturated bytes = 0;
    const auto add = [&](Saturated size) { bytes = bytes + size + int64_t{kWorkspaceAlignment}; };
    for (const Operand &operand : comparedOperands(*each.node, step.op)) {
      const TensorRule &rule = tensorRule(operand.name);
      Saturated size = rule.lead == Lead::kBlocks ? Saturated(maxima.batch) * step.compressedBlocks(maxima.seqlenK)
                                                  : extents.rows(each.node->isChunked ? Rows::kChunk : Rows::kQueries);
      for (size_t i = 0; i < rule.axisCount; ++i)
        size = size * axisExtent(rule.axes[i], step);
      add(size * dtypeBytes(step.types().of(rule.role)));
    }
    for (const auto &[view, buffer, role] : kComparedBuffers)
      if (definitionOf(step.op).mayTake(view))
        add(Saturated(placed[static_cast<size_t>(buffer)].copy) * dtypeBytes(step.types().of(role)));
    most = std::max(most, bytes.value());
  }
  place(definitionScratch, static_cast<int64_t>(definitionBytes));
  for (size_t &offset : compared)
    place(offset, most);
}

} // namespace nsa
