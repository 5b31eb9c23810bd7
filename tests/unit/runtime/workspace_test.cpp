// The size that a plan asks for is the formula of docs/operators.md, written out here as it stands there.
#include "tests/unit/runtime/whole_calls.h"

#include <algorithm>
#include <bit>

namespace nsa::test::c_api {
namespace {

constexpr int64_t kElement = 2;
constexpr int64_t kChunkBytes = int64_t{32} << 20; // of a CPU
constexpr int64_t kSlots = 48;

int64_t ceildiv(int64_t value, int64_t by) { return (value + by - 1) / by; }
int64_t up(int64_t value, int64_t granule) { return ceildiv(value, granule) * granule; }
int64_t bucket(int64_t value) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(value))); }

// Pieces one after the other, each at a multiple of 256 bytes.
int64_t placed(const std::vector<int64_t> &pieces) {
  int64_t end = 0;
  for (const int64_t piece : pieces)
    end = up(end, 256) + piece;
  return end;
}

struct Sizes {
  explicit Sizes(const AnyCall &call)
      : s(call.spec), m(call.maxima), isPacked(s.layout == NSA_LAYOUT_PACKED), entries(isPacked ? 1 : m.max_batch),
        hasCmp(s.branches & NSA_BRANCH_CMP), hasSel(s.branches & NSA_BRANCH_SEL), hasWin(s.branches & NSA_BRANCH_WIN) {}

  const nsa_spec &s;
  const nsa_maxima &m;
  bool isPacked;
  int64_t entries;
  bool hasCmp, hasSel, hasWin;

  int64_t compressed(int64_t tokens) const {
    return tokens < s.cmp_block ? 0 : (tokens - s.cmp_block) / s.cmp_stride + 1;
  }

  // Of a chunk of queries: log-sum-exp and lists, outputs and counts by branch.
  void addChunk(std::vector<int64_t> &pieces) const {
    const int64_t out = int64_t{s.query_heads} * s.v_dim * kElement, reads = int64_t{4} * s.kv_heads;
    const int64_t lse = int64_t{4} * s.query_heads, list = int64_t{4} * s.kv_heads * s.sel_count;
    const int64_t perQuery = 3 * (out + reads) + lse + list;
    const int64_t most = std::max<int64_t>(kChunkBytes / (perQuery * entries) / 64 * 64, 64);
    const int64_t queries = entries * std::min(most, isPacked ? m.max_tokens_q : m.max_seqlen_q);
    if (hasCmp || hasSel)
      pieces.insert(pieces.end(), {queries * lse, queries * list, queries * out, queries * reads});
    for (const bool has : {hasSel, hasWin})
      if (has)
        pieces.insert(pieces.end(), {queries * out, queries * reads});
  }

  int64_t forward() const {
    std::vector<int64_t> pieces;
    if (isPacked)
      pieces.push_back(32 * m.max_batch);
    if (hasCmp || hasSel)
      for (const int64_t dim : {s.qk_dim, s.v_dim})
        pieces.push_back(m.max_batch * compressed(m.max_seqlen_k) * s.kv_heads * dim * kElement);
    addChunk(pieces);
    return placed(pieces);
  }

  int64_t programs() const { return bucket(m.max_batch) * bucket(m.max_seqlen_q) * bucket(s.kv_heads); }
  int64_t splits(int64_t keys) const {
    return std::clamp<int64_t>(std::min(ceildiv(512, programs()), keys / 64), 1, 16);
  }
  // Scores that segments keep.
  int64_t kept() const {
    const int64_t most = ceildiv(bucket(m.max_seqlen_k), s.sel_block), n = up(s.sel_count, 16);
    if (most <= 512 && programs() * most * most <= int64_t{1} << 24)
      return 0;
    int64_t segment = 128;
    while (segment * segment < most * n)
      segment *= 2;
    return ceildiv(ceildiv(m.max_seqlen_k, s.sel_block), segment) * n;
  }

  int64_t decode() const {
    const int64_t rows = isPacked ? m.max_tokens_q : m.max_batch * m.max_seqlen_q;
    std::vector<int64_t> pieces = {64 * m.max_batch};
    if (hasCmp || hasSel)
      for (const int64_t dim : {s.qk_dim, s.v_dim})
        pieces.push_back((rows + m.max_batch * (s.cmp_block - 1)) * s.kv_heads * dim * kElement);
    if (m.max_seqlen_q > 8) {
      addChunk(pieces);
      return placed(pieces);
    }
    const int64_t tokens = bucket(m.max_seqlen_k);
    const int64_t cmp = hasCmp || hasSel ? splits(compressed(tokens)) : 0;
    const int64_t sel = hasSel ? splits(std::min(int64_t{s.sel_count} * s.sel_block, tokens)) : 0;
    const int64_t win = hasWin ? splits(bucket(std::min<int64_t>(s.window, m.max_seqlen_k))) : 0;
    const int64_t blocks = up(ceildiv(m.max_seqlen_k, s.sel_block), 128);
    pieces.insert(pieces.end(),
                  {4 * (cmp + sel + win) * rows * s.query_heads * s.v_dim, 4 * kSlots * rows * s.query_heads,
                   4 * cmp * rows * s.query_heads, 4 * kSlots * rows * s.kv_heads});
    const int64_t perScore = 4 * rows * s.kv_heads, keptScores = up(kept(), 128);
    if (hasSel)
      pieces.insert(pieces.end(), {perScore * blocks, perScore * keptScores, perScore * keptScores});
    pieces.push_back(perScore * s.sel_count);
    return placed(pieces);
  }
};

class Workspace : public CApi {
protected:
  void expectSize(const AnyCall &call, int64_t expected) {
    SCOPED_TRACE("branches " + std::to_string(call.spec.branches) + ", layout " + std::to_string(call.spec.layout) +
                 ", batch " + std::to_string(call.maxima.max_batch) + ", max_seqlen_q " +
                 std::to_string(call.maxima.max_seqlen_q) + ", max_seqlen_k " +
                 std::to_string(call.maxima.max_seqlen_k));
    storeReturningKernels(cache, call.internalSpec(), call.internalMaxima());
    Engine engine(cache);
    nsa_plan *plan = nullptr;
    nsa_error error = {};
    ASSERT_EQ(nsa_plan_create_with(engine.handle, &call.spec, &call.maxima, nullptr, nullptr, &plan, &error), NSA_OK)
        << error.message;
    size_t bytes = 0;
    EXPECT_EQ(nsa_plan_workspace_size(plan, &bytes, &error), NSA_OK) << error.message;
    nsa_plan_destroy(plan);
    EXPECT_EQ(static_cast<int64_t>(bytes), expected);
  }
  // With the geometry of the contract, so that branches differ and several programs share keys.
  static void enlarge(AnyCall &call, int64_t batch, int64_t newTokens, int64_t tokens) {
    nsa_spec &spec = call.spec;
    spec.query_heads = 64;
    spec.kv_heads = 4;
    spec.qk_dim = 192;
    spec.v_dim = 128;
    spec.window = 500;
    spec.cmp_block = 32;
    spec.cmp_stride = 16;
    spec.sel_block = 64;
    spec.sel_count = 16;
    const bool isPacked = spec.layout == NSA_LAYOUT_PACKED;
    call.maxima.max_batch = batch;
    call.maxima.max_tokens_q = batch * newTokens - (isPacked ? batch / 2 : 0);
    call.maxima.max_seqlen_q = newTokens;
    call.maxima.max_seqlen_k = tokens;
  }
};

TEST_F(Workspace, OfTheForwardIsTheFormula) {
  for (const nsa_layout layout : {NSA_LAYOUT_DENSE, NSA_LAYOUT_PACKED})
    for (int32_t branches = 1; branches <= NSA_BRANCHES_ALL; ++branches) {
      ForwardCall call(layout);
      call.spec.branches = branches;
      expectSize(call, Sizes(call).forward());
      for (const auto &[batch, tokens] :
           {std::pair<int64_t, int64_t>{1, 131072}, {3, 1000}, {200, 65}}) { // chunks; none; the least
        enlarge(call, batch, tokens, tokens);
        expectSize(call, Sizes(call).forward());
      }
    }
}

// Their kernels return at once and have no scratch.
TEST_F(Workspace, OfOneKernelIsItsTableOfSequences) {
  for (const nsa_layout layout : {NSA_LAYOUT_DENSE, NSA_LAYOUT_PACKED})
    for (const nsa_op op : {NSA_OP_WINDOW, NSA_OP_CMP, NSA_OP_SELECT, NSA_OP_COMBINE}) {
      ForwardCall call(layout);
      call.spec.op = op;
      enlarge(call, 3, 70, 70);
      const bool isPacked = layout == NSA_LAYOUT_PACKED;
      const int64_t queries = isPacked ? call.maxima.max_tokens_q : 3 * 70;
      std::vector<int64_t> pieces;
      if (isPacked && op != NSA_OP_COMBINE)
        pieces.push_back(32 * 3);
      if (op == NSA_OP_SELECT)
        pieces.insert(pieces.end(), {queries * 4 * 64, queries * 64 * 192 * kElement});
      expectSize(call, placed(pieces));
    }
}

TEST_F(Workspace, OfDecodeIsTheFormula) {
  for (const nsa_layout layout : {NSA_LAYOUT_DENSE, NSA_LAYOUT_PACKED})
    for (int32_t branches = 1; branches <= NSA_BRANCHES_ALL; ++branches) {
      DecodeCall call(layout, 0, branches);
      expectSize(call, Sizes(call).decode());
      // A step, one of several tokens, of many sequences, and the forward's kernels: one chunk, several.
      for (const auto &[batch, tokens] :
           {std::pair<int64_t, int64_t>{1, 1}, {1, 8}, {3, 5}, {64, 1}, {2, 9}, {1, 5000}}) {
        enlarge(call, batch, tokens, 20000);
        expectSize(call, Sizes(call).decode());
      }
    }
}

} // namespace
} // namespace nsa::test::c_api
