// Decode (docs/specification.md 10): what a sequence remembers, and steps that append tokens and attend with the newest
// queries. A prompt is a step too, or several; nothing here knows the difference. Ownership: a cache owns its pools;
// views borrow them. Thread-safety: one thread per object; const calls from any.
#pragma once

#include "tools/reference/nsa.h"

#include <cstdint>
#include <vector>

namespace nsa::reference {

// How tokens lie in the pools: one row of `capacity` tokens for each sequence, or pages of a shared pool.
struct CacheLayout {
  int64_t batch = 0;
  int64_t capacity = 0;   // contiguous: tokens of one sequence
  int64_t pageTokens = 0; // 0: contiguous; else a multiple of sel_block
  int64_t pages = 0;      // in each pool
  int64_t pagesPerSequence = 0;
  std::vector<int32_t> blockTable{}; // [batch, pagesPerSequence]; entries behind a sequence's end are not read
};

// What a step brings: m new tokens for each sequence, as T_q = T = m (denseSequences, or packedSequences with the same
// cu_seqlens twice); an m of 0 leaves its sequence alone. Branches that are switched off bring nothing.
struct NewTokens {
  TensorView q{}, qCmp{}; // qCmp not given: q
  TensorView kCmp{}, vCmp{}, kSel{}, vSel{}, kWin{}, vWin{};
  TensorView gates{};
  std::vector<Sequence> sequences{};
};

class DecodeCache {
public:
  DecodeCache(const Spec &spec, const Phi &phiK, const Phi &phiV, CacheLayout layout);

  // Appends token after token, and compresses each block as soon as its last token is there.
  void append(const NewTokens &tokens);
  // The queries of the tokens that were appended last. A block list, when given, replaces the selection.
  NsaResult attend(const NewTokens &tokens, const BlockListView &blockLists = {}, int threads = 0) const;

  int64_t length(int64_t sequence) const { return lengths[static_cast<size_t>(sequence)]; } // L

  // Pools by (sequence, token, kv head, column), compressed ones by (sequence, block, ...); what was never written is
  // NaN. `raw` are the last cmp_block tokens, token t in row t mod cmp_block.
  struct Pair {
    TensorView k, v;
  };
  Pair sel() const { return {view(selK, true), view(selV, true)}; }
  Pair win() const { return {view(winK, true), view(winV, true)}; }
  Pair compressed() const { return {view(compK, true), view(compV, true)}; }
  Pair raw() const { return {view(rawK, false), view(rawV, false)}; }

private:
  OwnedTensor makePool(int64_t tokensPerRow, int64_t columns) const;
  TensorView view(const OwnedTensor &pool, bool inPages) const;
  static void copyRow(const TensorView &from, int64_t batch, int64_t time, OwnedTensor &pool, const TensorView &to,
                      int64_t sequence, int64_t row);
  void emitBlock(const PhiFunction &function, const OwnedTensor &raw, OwnedTensor &pool, int64_t sequence);

  Spec spec;
  PhiFunction phiK, phiV;
  CacheLayout layout;
  std::vector<int64_t> lengths;
  OwnedTensor selK, selV, winK, winV, compK, compV, rawK, rawV;
};

// What a step at length S is expected to read per kv head when enough blocks exist: N_c(S) + n * l' + min(w, S).
int64_t expectedReads(const Spec &spec, int64_t tokens);

} // namespace nsa::reference
