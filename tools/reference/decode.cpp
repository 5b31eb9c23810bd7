#include "tools/reference/decode.h"

#include "tools/reference/elements.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace nsa::reference {

DecodeCache::DecodeCache(const Spec &spec, const Phi &phiK, const Phi &phiV, CacheLayout cacheLayout)
    : spec(spec), phiK(spec, phiK, spec.qkDim), phiV(spec, phiV, spec.vDim), layout(std::move(cacheLayout)),
      lengths(static_cast<size_t>(layout.batch), 0) {
  assert(layout.pageTokens % spec.selBlock == 0);
  selK = makePool(1, spec.qkDim);
  selV = makePool(1, spec.vDim);
  winK = makePool(1, spec.qkDim);
  winV = makePool(1, spec.vDim);
  compK = makePool(spec.cmpStride, spec.qkDim);
  compV = makePool(spec.cmpStride, spec.vDim);
  rawK = OwnedTensor::make(spec.dtype, layout.batch, spec.cmpBlock, spec.kvHeads, spec.qkDim);
  rawV = OwnedTensor::make(spec.dtype, layout.batch, spec.cmpBlock, spec.kvHeads, spec.vDim);
}

OwnedTensor DecodeCache::makePool(int64_t tokensPerRow, int64_t columns) const {
  // Block c begins at token c * d, so a page of tokens has the blocks that begin in it (docs/specification.md 10).
  const bool paged = layout.pageTokens > 0;
  const int64_t tokens = paged ? layout.pageTokens : layout.capacity;
  return OwnedTensor::make(spec.dtype, paged ? layout.pages : layout.batch, (tokens + tokensPerRow - 1) / tokensPerRow,
                           spec.kvHeads, columns);
}

TensorView DecodeCache::view(const OwnedTensor &pool, bool inPages) const {
  TensorView result = pool.view();
  if (inPages && layout.pageTokens > 0) {
    result.pages = layout.blockTable;
    result.pagesPerSequence = layout.pagesPerSequence;
    result.pageRows = pool.times;
  }
  return result;
}

void DecodeCache::copyRow(const TensorView &from, int64_t batch, int64_t time, OwnedTensor &pool, const TensorView &to,
                          int64_t sequence, int64_t row) {
  if (!from.isGiven())
    return;
  for (int64_t kvHead = 0; kvHead < pool.heads; ++kvHead)
    for (int64_t c = 0; c < pool.columns; ++c)
      storeElement(pool.dtype, pool.bytes.data(), to.offset(sequence, row, kvHead, c), from.at(batch, time, kvHead, c));
}

void DecodeCache::emitBlock(const PhiFunction &function, const OwnedTensor &raw, OwnedTensor &pool, int64_t sequence) {
  const int64_t tokens = lengths[sequence], block = (tokens - spec.cmpBlock) / spec.cmpStride;
  const TensorView last = raw.view(), rows = view(pool, true);
  for (int64_t kvHead = 0; kvHead < spec.kvHeads; ++kvHead) {
    std::vector<double> values;
    for (int64_t token = tokens - spec.cmpBlock; token < tokens; ++token)
      for (int64_t c = 0; c < raw.columns; ++c)
        values.push_back(last.at(sequence, token % spec.cmpBlock, kvHead, c));
    const std::vector<double> row = function(values);
    for (int64_t c = 0; c < pool.columns; ++c)
      storeElement(pool.dtype, pool.bytes.data(), rows.offset(sequence, block, kvHead, c), row[c]);
  }
}

void DecodeCache::append(const NewTokens &tokens) {
  assert(static_cast<int64_t>(tokens.sequences.size()) == layout.batch);
  const Pair selRows = sel(), winRows = win(), rawRows = raw();
  for (int64_t s = 0; s < layout.batch; ++s) {
    const Sequence &sequence = tokens.sequences[s];
    assert(sequence.queries == sequence.keys && "only new tokens come");
    for (int64_t i = 0; i < sequence.keys; ++i) {
      int64_t &length = lengths[s];
      assert(length < (layout.pageTokens > 0 ? layout.pagesPerSequence * layout.pageTokens : layout.capacity));
      const int64_t batch = sequence.keyBatch, time = sequence.keyBegin + i;
      copyRow(tokens.kSel, batch, time, selK, selRows.k, s, length);
      copyRow(tokens.vSel, batch, time, selV, selRows.v, s, length);
      copyRow(tokens.kWin, batch, time, winK, winRows.k, s, length);
      copyRow(tokens.vWin, batch, time, winV, winRows.v, s, length);
      copyRow(tokens.kCmp, batch, time, rawK, rawRows.k, s, length % spec.cmpBlock);
      copyRow(tokens.vCmp, batch, time, rawV, rawRows.v, s, length % spec.cmpBlock);
      ++length;
      if (length < spec.cmpBlock || (length - spec.cmpBlock) % spec.cmpStride != 0)
        continue;
      if (tokens.kCmp.isGiven())
        emitBlock(phiK, rawK, compK, s);
      if (tokens.vCmp.isGiven())
        emitBlock(phiV, rawV, compV, s);
    }
  }
}

NsaResult DecodeCache::attend(const NewTokens &tokens, const BlockListView &blockLists, int threads) const {
  Nsa nsa{.spec = spec,
          .q = tokens.q,
          .qCmp = tokens.qCmp,
          .kCmp = {},
          .vCmp = {},
          .kSel = sel().k,
          .vSel = sel().v,
          .kWin = win().k,
          .vWin = win().v,
          .gates = tokens.gates,
          .phiK = {},
          .phiV = {},
          .sequences = tokens.sequences,
          .rows = {},
          .kComp = compressed().k,
          .vComp = compressed().v,
          .blockLists = blockLists};
  for (int64_t s = 0; s < layout.batch; ++s) {
    nsa.sequences[s].keyBatch = s;
    nsa.sequences[s].keyBegin = 0;
    nsa.sequences[s].keys = lengths[s];
    nsa.sequences[s].blockBegin = 0;
  }
  return forward(nsa, threads);
}

int64_t expectedReads(const Spec &spec, int64_t tokens) {
  return spec.compressedBlocks(tokens) + int64_t{spec.selCount} * spec.selBlock +
         std::min<int64_t>(spec.window, tokens);
}

} // namespace nsa::reference
