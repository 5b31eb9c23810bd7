// Every rule of a call of `decode` with the field, value and rule that its error names: the cache's tensors, and what
// the host sees of lengths and pages. Its kernels return at once.
#include "tests/unit/runtime/whole_calls.h"

#include <limits>

namespace nsa::test::c_api {
namespace {

struct DecodeRule {
  const char *field, *value, *rule;
  std::function<void(DecodeCall &)> spoil;
};

class DecodeRules : public CApi {
protected:
  // A plan for calls of one kind, over which each rule is broken alone.
  void check(nsa_layout layout, int32_t pageSize, const std::vector<DecodeRule> &rules,
             int32_t branches = NSA_BRANCHES_ALL) {
    DecodeCall whole(layout, pageSize, branches);
    storeReturningKernels(cache, whole.internalSpec(), whole.internalMaxima());
    Engine engine(cache);
    Plan plan(engine, whole);
    ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
    ASSERT_EQ(plan.run(whole), NSA_OK) << plan.error.message;
    for (const DecodeRule &rule : rules) {
      DecodeCall call(layout, pageSize, branches);
      rule.spoil(call);
      SCOPED_TRACE(std::string(rule.field) + ": " + rule.rule);
      EXPECT_EQ(plan.run(call), NSA_INVALID_ARGUMENT);
      EXPECT_STREQ(plan.error.field, rule.field);
      EXPECT_STREQ(plan.error.value, rule.value);
      EXPECT_NE(std::string(plan.error.rule).find(rule.rule), std::string::npos) << plan.error.rule;
    }
  }
  // Calls that are well-formed and look as if they were not.
  void accept(nsa_layout layout, int32_t pageSize, const std::function<void(DecodeCall &)> &change,
              int32_t branches = NSA_BRANCHES_ALL) {
    DecodeCall call(layout, pageSize, branches);
    storeReturningKernels(cache, call.internalSpec(), call.internalMaxima());
    Engine engine(cache);
    Plan plan(engine, call);
    ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
    change(call);
    EXPECT_EQ(plan.run(call), NSA_OK) << plan.error.message;
  }
};

TEST_F(DecodeRules, OfTheCacheInOnePiece) {
  check(
      NSA_LAYOUT_DENSE, 0,
      {
          {"cache_seqlens", "absent", "must be bound", [](DecodeCall &c) { c.drop(NSA_CACHE_SEQLENS); }},
          {"cache_seqlens.dtype", "fp32", "must be int32",
           [](DecodeCall &c) { c.tensors[NSA_CACHE_SEQLENS].dtype = NSA_FP32; }},
          {"cache_seqlens.rank", "2", "must be 1", [](DecodeCall &c) { c.tensors[NSA_CACHE_SEQLENS].rank = 2; }},
          {"cache_seqlens.strides", "[0]", "must not share memory",
           [](DecodeCall &c) { c.tensors[NSA_CACHE_SEQLENS].strides[0] = 0; }},
          {"cache_seqlens.data", "null", "must point to",
           [](DecodeCall &c) { c.tensors[NSA_CACHE_SEQLENS].data = nullptr; }},
          {"block_table", "bound", "no tensor of operator decode with this spec", [](DecodeCall &c) { c.setTable(); }},
          {"cu_seqlens_k", "bound", "no tensor of operator decode",
           [](DecodeCall &c) { c.set(NSA_CU_SEQLENS_K, c.offsets, NSA_INT32, {3}); }},
          {"cu_seqlens_q", "bound", "belongs to the packed layout only",
           [](DecodeCall &c) { c.set(NSA_CU_SEQLENS_Q, c.offsets, NSA_INT32, {3}); }},
          {"k_comp", "bound", "no tensor of operator decode",
           [](DecodeCall &c) { c.set(NSA_K_COMP, c.memory, NSA_BF16, {2, 11, 2, 8}); }},
          {"k_comp_cache", "absent", "must be bound", [](DecodeCall &c) { c.drop(NSA_K_COMP_CACHE); }},
          {"v_raw", "absent", "must be bound", [](DecodeCall &c) { c.drop(NSA_V_RAW); }},
          {"k_cache", "absent", "must be bound", [](DecodeCall &c) { c.drop(NSA_K_SEL_CACHE); }},
          {"v_cache", "absent", "must be bound", [](DecodeCall &c) { c.drop(NSA_V_WIN_CACHE); }},
          {"q.shape", "[2, 4, 4, 8]", "must be 1 (batch of cache_seqlens)",
           [](DecodeCall &c) { c.setExtent({NSA_CACHE_SEQLENS}, 0, 1); }},
          {"gates.shape", "[1, 4, 4, 3]", "must be 2 (batch of cache_seqlens)",
           [](DecodeCall &c) { c.setExtent({NSA_GATES}, 0, 1); }},
          {"k_sel_cache.dtype", "fp16", "must be bf16",
           [](DecodeCall &c) { c.tensors[NSA_K_SEL_CACHE].dtype = NSA_FP16; }},
          {"k_sel_cache.rank", "3", "must be 4", [](DecodeCall &c) { c.tensors[NSA_K_SEL_CACHE].rank = 3; }},
          {"k_sel_cache.shape", "[3, 48, 2, 8]", "must be 2 (batch of cache_seqlens)",
           [](DecodeCall &c) { c.setExtent({NSA_K_SEL_CACHE}, 0, 3); }},
          {"k_sel_cache.shape", "[2, 48, 1, 8]", "must be 2 (kv_heads)",
           [](DecodeCall &c) { c.setExtent({NSA_K_SEL_CACHE}, 2, 1); }},
          {"v_sel_cache.shape", "[2, 48, 2, 8]", "must be 16 (v_dim)",
           [](DecodeCall &c) { c.setExtent({NSA_V_SEL_CACHE}, 3, 8); }},
          {"v_sel_cache.shape", "[2, 47, 2, 16]", "must be 48 (as k_sel_cache)",
           [](DecodeCall &c) { c.setExtent({NSA_V_SEL_CACHE}, 1, 47); }},
          {"k_win_cache.shape", "[2, 49, 2, 8]", "must be 48 (as k_sel_cache)",
           [](DecodeCall &c) { c.setExtent({NSA_K_WIN_CACHE}, 1, 49); }},
          {"v_win_cache.strides", "2", "must be contiguous",
           [](DecodeCall &c) { c.tensors[NSA_V_WIN_CACHE].strides[3] = 2; }},
          {"k_win_cache.strides", "[0, 16, 8, 1]", "must not share memory",
           [](DecodeCall &c) { c.tensors[NSA_K_WIN_CACHE].strides[0] = 0; }},
          {"k_comp_cache.shape", "[2, 10, 2, 8]", "must be at least 11, the compressed blocks of 48 tokens",
           [](DecodeCall &c) { c.setExtent({NSA_K_COMP_CACHE}, 1, 10); }},
          {"v_comp_cache.shape", "[2, 3, 2, 16]", "must be at least 11",
           [](DecodeCall &c) { c.setExtent({NSA_V_COMP_CACHE}, 1, 3); }},
          {"v_comp_cache.shape", "[1, 11, 2, 16]", "must be 2 (batch of cache_seqlens)",
           [](DecodeCall &c) { c.setExtent({NSA_V_COMP_CACHE}, 0, 1); }},
          {"k_raw.shape", "[2, 7, 2, 8]", "must be 8 (cmp_block)",
           [](DecodeCall &c) { c.setExtent({NSA_K_RAW}, 1, 7); }},
          {"v_raw.shape", "[4, 8, 2, 16]", "must be 2 (batch of cache_seqlens)",
           [](DecodeCall &c) { c.setExtent({NSA_V_RAW}, 0, 4); }},
          {"v_raw.shape", "[2, 8, 3, 16]", "must be 2 (kv_heads)",
           [](DecodeCall &c) { c.setExtent({NSA_V_RAW}, 2, 3); }},
          {"v_win.shape", "[2, 3, 2, 16]", "must be 4 (as k_cmp)",
           [](DecodeCall &c) { c.setExtent({NSA_V_WIN}, 1, 3); }},
          {"k_cmp.shape", "[2, 3, 2, 8]", "must be 4 (as q)",
           [](DecodeCall &c) {
             c.setExtent({NSA_K_CMP, NSA_V_CMP, NSA_K_SEL, NSA_V_SEL, NSA_K_WIN, NSA_V_WIN}, 1, 3);
           }},
      });
}

TEST_F(DecodeRules, OfTheCacheInPages) {
  check(NSA_LAYOUT_DENSE, kPageSize,
        {
            {"block_table", "absent", "must be bound where the spec has a page_size",
             [](DecodeCall &c) { c.drop(NSA_BLOCK_TABLE); }},
            {"block_table.dtype", "bf16", "must be int32",
             [](DecodeCall &c) { c.tensors[NSA_BLOCK_TABLE].dtype = NSA_BF16; }},
            {"block_table.rank", "1", "must be 2", [](DecodeCall &c) { c.tensors[NSA_BLOCK_TABLE].rank = 1; }},
            {"block_table.shape", "[1, 3]", "must be 2 (batch of cache_seqlens)",
             [](DecodeCall &c) { c.setExtent({NSA_BLOCK_TABLE}, 0, 1); }},
            {"block_table.strides", "2", "must be contiguous",
             [](DecodeCall &c) { c.tensors[NSA_BLOCK_TABLE].strides[1] = 2; }},
            {"block_table.data", "null", "must point to",
             [](DecodeCall &c) { c.tensors[NSA_BLOCK_TABLE].data = nullptr; }},
            {"k_sel_cache.shape", "[7, 15, 2, 8]", "must be 16 (page_size)",
             [](DecodeCall &c) { c.setExtent({NSA_K_SEL_CACHE}, 1, 15); }},
            {"v_sel_cache.shape", "[6, 16, 2, 16]", "must be 7 (as k_sel_cache)",
             [](DecodeCall &c) { c.setExtent({NSA_V_SEL_CACHE}, 0, 6); }},
            {"k_win_cache.shape", "[8, 16, 2, 8]", "must be 7 (as k_sel_cache)",
             [](DecodeCall &c) { c.setExtent({NSA_K_WIN_CACHE}, 0, 8); }},
            {"k_comp_cache.shape", "[7, 5, 2, 8]", "must be 4 (page_size / cmp_stride)",
             [](DecodeCall &c) { c.setExtent({NSA_K_COMP_CACHE}, 1, 5); }},
            {"v_comp_cache.shape", "[2, 4, 2, 16]", "must be 7 (as k_sel_cache)",
             [](DecodeCall &c) { c.setExtent({NSA_V_COMP_CACHE}, 0, 2); }},
            {"k_raw.shape", "[7, 8, 2, 8]", "must be 2 (batch of cache_seqlens)",
             [](DecodeCall &c) { c.setExtent({NSA_K_RAW}, 0, 7); }},
            // Contents: the pages of the tokens, of earlier ones too.
            {"block_table[0, 0]", "-5", "must be one of the pools' 7 pages",
             [](DecodeCall &c) {
               c.table[0] = -5;
               c.table[1] = 6;
               c.lengths[0] = 16;
             }},
            {"block_table[0, 0]", "7", "must be one of the pools' 7 pages", [](DecodeCall &c) { c.table[0] = 7; }},
            {"block_table[1, 2]", "-1", "must be one of the pools' 7 pages", [](DecodeCall &c) { c.table[5] = -1; }},
            {"block_table[0, 1]", "99", "must be one of the pools' 7 pages", [](DecodeCall &c) { c.lengths[0] = 13; }},
            {"cache_seqlens[0]", "45", "the cache has room for 48 tokens, and 4 more come",
             [](DecodeCall &c) { c.lengths[0] = 45; }},
        });
}

TEST_F(DecodeRules, OfPackedNewTokens) {
  check(NSA_LAYOUT_PACKED, kPageSize,
        {
            {"cu_seqlens_q", "absent", "packed layout needs cu_seqlens_q",
             [](DecodeCall &c) { c.drop(NSA_CU_SEQLENS_Q); }},
            {"cu_seqlens_q", "absent", "packed layout needs cu_seqlens_q",
             [](DecodeCall &c) {
               c.drop(NSA_CU_SEQLENS_Q);
               c.set(NSA_CU_SEQLENS_K, c.offsets, NSA_INT32, {3});
             }},
            {"cu_seqlens_k", "bound", "no tensor of operator decode",
             [](DecodeCall &c) { c.set(NSA_CU_SEQLENS_K, c.offsets, NSA_INT32, {3}); }},
            {"cache_seqlens.shape", "[2]", "must be 1 (the sequences of cu_seqlens_q)",
             [](DecodeCall &c) { c.setExtent({NSA_CU_SEQLENS_Q}, 0, 2); }},
            {"k_cmp.shape", "[3, 2, 8]", "must be 4 (as q)",
             [](DecodeCall &c) {
               c.setExtent({NSA_K_CMP, NSA_V_CMP, NSA_K_SEL, NSA_V_SEL, NSA_K_WIN, NSA_V_WIN}, 0, 3);
             }},
            {"cu_seqlens_q[0]", "1", "must be 0", [](DecodeCall &c) { c.offsets[0] = 1; }},
            {"cu_seqlens_q[2]", "0", "less than the one before, 1", [](DecodeCall &c) { c.offsets[2] = 0; }},
            {"cu_seqlens_q[2]", "5", "rows of q = 4", [](DecodeCall &c) { c.offsets[2] = 5; }},
            {"cache_seqlens[1]", "46", "room for 48 tokens, and 3 more come", [](DecodeCall &c) { c.lengths[1] = 46; }},
            {"cache_seqlens[1]", "38", "with 3 new tokens must be at most the plan's max_seqlen_k = 40",
             [](DecodeCall &c) { c.lengths[1] = 38; }},
            {"block_table[1, 2]", "12", "must be one of", [](DecodeCall &c) { c.table[5] = 12; }},
        });
}

// What the host sees of lengths, before anything runs.
TEST_F(DecodeRules, OfLengths) {
  constexpr int32_t kLeast = std::numeric_limits<int32_t>::min(), kMost = std::numeric_limits<int32_t>::max();
  check(NSA_LAYOUT_DENSE, 0,
        {
            {"cache_seqlens[1]", "-1", "must be from 0 to the cache's room of 48 tokens",
             [](DecodeCall &c) { c.lengths[1] = -1; }},
            {"cache_seqlens[0]", "-2147483648", "must be from 0", [](DecodeCall &c) { c.lengths[0] = kLeast; }},
            {"cache_seqlens[0]", "49", "must be from 0 to the cache's room of 48 tokens",
             [](DecodeCall &c) { c.lengths[0] = 49; }},
            {"cache_seqlens[1]", "2147483647", "must be from 0", [](DecodeCall &c) { c.lengths[1] = kMost; }},
            {"cache_seqlens[0]", "48", "the cache has room for 48 tokens, and 4 more come",
             [](DecodeCall &c) { c.lengths[0] = 48; }},
            {"cache_seqlens[1]", "45", "the cache has room for 48 tokens, and 4 more come",
             [](DecodeCall &c) { c.lengths[1] = 45; }},
            {"cache_seqlens[1]", "37", "with 4 new tokens must be at most the plan's max_seqlen_k = 40",
             [](DecodeCall &c) { c.lengths[1] = 37; }},
            {"seqlen_q", "4", "must be at most seqlen_k = 3",
             [](DecodeCall &c) {
               c.setExtent({NSA_K_SEL_CACHE, NSA_V_SEL_CACHE, NSA_K_WIN_CACHE, NSA_V_WIN_CACHE}, 1, 3);
             }},
        });
}

TEST_F(DecodeRules, OfMaxima) {
  DecodeCall call(NSA_LAYOUT_PACKED, 0);
  call.maxima.max_seqlen_q = 2;
  storeReturningKernels(cache, call.internalSpec(), call.internalMaxima());
  Engine engine(cache);
  Plan plan(engine, call);
  ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
  EXPECT_EQ(plan.run(call), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(plan.error.field, "seqlen_q of sequence 1");
  EXPECT_STREQ(plan.error.value, "3");
  call.offsets[1] = 2;
  EXPECT_EQ(plan.run(call), NSA_OK) << plan.error.message;
  EXPECT_EQ(call.lengths[1], 33) << "lengths are the kernels' to raise";
}

// What the host sees of a call's size.
TEST_F(DecodeRules, OfACallLargerThanItsPlan) {
  check(NSA_LAYOUT_DENSE, 0,
        {
            {"batch", "3", "must be at most the plan's max_batch = 2",
             [](DecodeCall &c) {
               for (const nsa_binding &binding : c.bindings)
                 c.setExtent({binding.name}, 0, 3);
             }},
            {"seqlen_q", "5", "must be at most the plan's max_seqlen_q = 4",
             [](DecodeCall &c) {
               c.setExtent(
                   {NSA_Q, NSA_GATES, NSA_OUT, NSA_K_CMP, NSA_V_CMP, NSA_K_SEL, NSA_V_SEL, NSA_K_WIN, NSA_V_WIN}, 1, 5);
             }},
        });
  check(NSA_LAYOUT_PACKED, kPageSize,
        {
            {"tokens_q", "9", "must be at most the plan's max_tokens_q = 8",
             [](DecodeCall &c) {
               c.setExtent(
                   {NSA_Q, NSA_GATES, NSA_OUT, NSA_K_CMP, NSA_V_CMP, NSA_K_SEL, NSA_V_SEL, NSA_K_WIN, NSA_V_WIN}, 0, 9);
             }},
        });
  DecodeCall call(NSA_LAYOUT_DENSE, 0);
  call.maxima.max_tokens_q = kBatch * kNew - 1; // fewer than all sequences' most
  storeReturningKernels(cache, call.internalSpec(), call.internalMaxima());
  Engine engine(cache);
  Plan plan(engine, call);
  ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
  EXPECT_EQ(plan.run(call), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(plan.error.field, "tokens_q");
  EXPECT_STREQ(plan.error.value, "8");
  EXPECT_STREQ(plan.error.rule, "must be at most the plan's max_tokens_q = 7");
  EXPECT_STREQ(plan.error.hint, "make a plan with larger maxima");
}

TEST_F(DecodeRules, OneCacheOfTwoBranchesTakesOneTensorOfNewTokens) {
  auto share = [](DecodeCall &c, nsa_name sel, nsa_name win, nsa_name both, int64_t columns) {
    c.drop(sel);
    c.drop(win);
    c.setPool(both, columns);
  };
  auto shareAll = [&](DecodeCall &c) {
    share(c, NSA_K_SEL_CACHE, NSA_K_WIN_CACHE, NSA_K_CACHE, 8);
    share(c, NSA_V_SEL_CACHE, NSA_V_WIN_CACHE, NSA_V_CACHE, 16);
  };
  for (const int32_t pageSize : {0, static_cast<int32_t>(kPageSize)}) {
    check(NSA_LAYOUT_DENSE, pageSize,
          {
              {"k_win.data", "another tensor than k_sel", "the new tokens must be one tensor too",
               [&](DecodeCall &c) {
                 shareAll(c);
                 c.tensors[NSA_K_WIN].data = c.memory + 64;
               }},
              {"v_win.data", "another tensor than v_sel", "the new tokens must be one tensor too",
               [&](DecodeCall &c) {
                 shareAll(c);
                 c.tensors[NSA_V_WIN].data = c.memory + 64;
               }},
              // The same pool under two names.
              {"v_win.data", "another tensor than v_sel", "the new tokens must be one tensor too",
               [&](DecodeCall &c) {
                 c.tensors[NSA_V_WIN_CACHE].data = c.tensors[NSA_V_SEL_CACHE].data;
                 c.tensors[NSA_V_WIN].data = c.memory + 64;
               }},
          });
    accept(NSA_LAYOUT_DENSE, pageSize, shareAll);
    accept(NSA_LAYOUT_DENSE, pageSize, [](DecodeCall &c) { c.tensors[NSA_K_WIN].data = c.memory + 64; });
    accept(NSA_LAYOUT_DENSE, pageSize, [&](DecodeCall &c) {
      for (nsa_name name : {NSA_K_CMP, NSA_V_CMP, NSA_K_SEL, NSA_V_SEL, NSA_K_WIN, NSA_V_WIN})
        c.drop(name);
      c.setNew(NSA_K, 2, 8);
      c.setNew(NSA_V, 2, 16);
      shareAll(c);
    });
  }
}

TEST_F(DecodeRules, BranchesThatAreOffTakeNoCache) {
  check(NSA_LAYOUT_DENSE, 0,
        {{"k_raw", "bound", "no tensor of operator decode",
          [](DecodeCall &c) { c.set(NSA_K_RAW, c.memory, NSA_BF16, {2, 8, 2, 8}); }},
         {"k_sel_cache", "bound", "no tensor of operator decode", [](DecodeCall &c) { c.setPool(NSA_K_SEL_CACHE, 8); }},
         {"v_win_cache.shape", "[2, 50, 2, 16]", "must be 48 (as k_win_cache)",
          [](DecodeCall &c) { c.setExtent({NSA_V_WIN_CACHE}, 1, 50); }}},
        NSA_BRANCH_WIN);
  // Without a pool of tokens the plan says how many there may be.
  check(
      NSA_LAYOUT_DENSE, 0,
      {{"k_comp_cache.shape", "[2, 8, 2, 8]", "must be at least 9, the compressed blocks of 40 tokens",
        [](DecodeCall &c) { c.setExtent({NSA_K_COMP_CACHE}, 1, 8); }},
       {"cache_seqlens[0]", "37", "the cache has room for 40 tokens", [](DecodeCall &c) { c.lengths[0] = 37; }},
       {"k_win_cache", "bound", "no tensor of operator decode", [](DecodeCall &c) { c.setPool(NSA_K_WIN_CACHE, 8); }}},
      NSA_BRANCH_CMP);
  check(NSA_LAYOUT_DENSE, kPageSize,
        {{"v_comp_cache.shape", "[9, 4, 2, 16]", "must be 7 (as k_comp_cache)",
          [](DecodeCall &c) { c.setExtent({NSA_V_COMP_CACHE}, 0, 9); }}},
        NSA_BRANCH_CMP);
}

TEST_F(DecodeRules, OnlyPagesOfTokensAreLookedAt) {
  // What stands behind the last one may be anything.
  accept(NSA_LAYOUT_DENSE, kPageSize, [](DecodeCall &c) {
    c.table[0] = c.table[1] = 6;
    c.table[2] = -5;
    c.lengths[0] = 16;
    c.lengths[1] = 36;
  });
  // Sequences without new tokens look at none.
  accept(NSA_LAYOUT_PACKED, kPageSize, [](DecodeCall &c) {
    c.offsets[1] = 0;
    c.table[0] = -5;
  });
  // Pages enough for more tokens than 32 bits count.
  accept(NSA_LAYOUT_DENSE, kPageSize, [](DecodeCall &c) {
    c.table[0] = c.table[1] = c.table[2] = 1;
    c.setExtent({NSA_BLOCK_TABLE}, 1, int64_t{1} << 28);
    c.tensors[NSA_BLOCK_TABLE].strides[0] = 0; // one row for both
  });
  accept(NSA_LAYOUT_DENSE, 0, [](DecodeCall &c) { c.lengths[0] = c.lengths[1] = 36; });
}

TEST_F(DecodeRules, OfThePlan) {
  Engine engine(cache);
  for (const int32_t pageSize : {-8, 4, 12, 17}) {
    DecodeCall call(NSA_LAYOUT_DENSE, pageSize);
    Plan plan(engine, call);
    EXPECT_EQ(plan.status, NSA_INVALID_ARGUMENT);
    EXPECT_STREQ(plan.error.field, "page_size");
    EXPECT_STREQ(plan.error.value, std::to_string(pageSize).c_str());
    EXPECT_STREQ(plan.error.rule, "must be a multiple of sel_block = 8, or 0 for no pages");
  }
  const struct {
    const char *field, *value, *rule;
    std::function<void(DecodeCall &)> spoil;
  } maxima[] = {
      {"max_seqlen_k", "4194305", "must be at most 4194304 where it decodes",
       [](DecodeCall &c) { c.maxima.max_seqlen_k = (int64_t{1} << 22) + 1; }},
      // 4 new tokens of each and 7 before them.
      {"max_batch", "195225775",
       "all sequences' new tokens, with cmp_block - 1 more of each, must be at most 2147483520",
       [](DecodeCall &c) { c.maxima.max_batch = 2147483520 / 11 + 1; }},
  };
  for (const auto &row : maxima) {
    DecodeCall call(NSA_LAYOUT_DENSE, 0);
    row.spoil(call);
    Plan plan(engine, call);
    EXPECT_EQ(plan.status, NSA_INVALID_ARGUMENT);
    EXPECT_STREQ(plan.error.field, row.field);
    EXPECT_STREQ(plan.error.value, row.value);
    EXPECT_STREQ(plan.error.rule, row.rule);
    EXPECT_NE(std::string(plan.error.message).find(row.rule), std::string::npos) << plan.error.message;
  }
}

} // namespace
} // namespace nsa::test::c_api
