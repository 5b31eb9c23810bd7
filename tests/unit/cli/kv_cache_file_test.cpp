// From tensors to a call of decode: new tokens, the cache that they belong to, and every disagreement.
#include "tests/unit/cli/tensor_files.h"

namespace nsa::tools {
namespace {

// Two sequences with two new tokens each; room for 200.
Tensors contiguous() {
  Tensors tensors = {
      {"q", tensor({2, 2, 8, 64})}, {"gates", tensor({2, 2, 8, 3})}, {"cache_seqlens", lengths({5, 150})}};
  for (const char *branch : {"cmp", "sel", "win"}) {
    tensors[std::string("k_") + branch] = tensor({2, 2, 2, 64});
    tensors[std::string("v_") + branch] = tensor({2, 2, 2, 48});
  }
  for (const char *branch : {"sel", "win"}) {
    tensors[std::string("k_") + branch + "_cache"] = tensor({2, 200, 2, 64});
    tensors[std::string("v_") + branch + "_cache"] = tensor({2, 200, 2, 48});
  }
  tensors["k_comp_cache"] = tensor({2, 11, 2, 64});
  tensors["v_comp_cache"] = tensor({2, 12, 2, 48}); // more than there must be
  tensors["k_raw"] = tensor({2, 32, 2, 64});
  tensors["v_raw"] = tensor({2, 32, 2, 48});
  return tensors;
}

HostTensor pageNumbers(std::vector<int64_t> shape) { return tensor(std::move(shape), DType::kI32); }

// The same in five pages of 64 tokens.
Tensors paged() {
  Tensors tensors = contiguous();
  for (const char *name : {"k_sel_cache", "k_win_cache"})
    tensors[name] = tensor({5, 64, 2, 64});
  for (const char *name : {"v_sel_cache", "v_win_cache"})
    tensors[name] = tensor({5, 64, 2, 48});
  tensors["k_comp_cache"] = tensor({5, 4, 2, 64});
  tensors["v_comp_cache"] = tensor({5, 4, 2, 48});
  tensors["block_table"] = pageNumbers({2, 3});
  return tensors;
}

TEST(KvCacheFile, PoolsSayHowMuchRoomThereIs) {
  const Result<OperatorFile> file = read(Operator::kDecode, contiguous(), R"({"window": 9})");
  ASSERT_TRUE(file) << file.status().toString();
  const auto &[spec, maxima, extents, tensors] = file->inputs;
  EXPECT_FALSE(file->withoutBatch);
  EXPECT_EQ(spec.layout, Layout::kDense);
  EXPECT_EQ(spec.queryHeads, 8);
  EXPECT_EQ(spec.kvHeads, 2);
  EXPECT_EQ(spec.pageSize, 0);
  EXPECT_EQ(extents.batch, 2);
  EXPECT_EQ(extents.timeQ, 2);
  EXPECT_EQ(extents.room, 200);
  EXPECT_EQ(maxima.tokensQ, 4);
  EXPECT_EQ(maxima.seqlenQ, 2);
  EXPECT_EQ(maxima.seqlenK, 200);
  EXPECT_EQ(tensors.size(), contiguous().size());
}

TEST(KvCacheFile, ATableMakesItPaged) {
  for (const char *config : {"{}", R"({"page_size": 64})"}) {
    const Result<OperatorFile> file = read(Operator::kDecode, paged(), config);
    ASSERT_TRUE(file) << file.status().toString();
    EXPECT_EQ(file->inputs.spec.pageSize, 64);
    EXPECT_EQ(file->inputs.extents.pages, 5);
    EXPECT_EQ(file->inputs.maxima.seqlenK, 192);
  }
}

TEST(KvCacheFile, OnePoolServesBothBranches) {
  Tensors tensors = contiguous();
  for (const char *name : {"k", "v"}) {
    const std::string base = name;
    tensors[base + "_cache"] = tensors.at(base + "_sel_cache");
    for (const char *branch : {"_sel_cache", "_win_cache"})
      tensors.erase(base + branch);
  }
  const Result<OperatorFile> file = read(Operator::kDecode, tensors);
  ASSERT_TRUE(file) << file.status().toString();
  EXPECT_TRUE(file->inputs.tensors.contains(TensorName::kKCache));
}

TEST(KvCacheFile, LengthsMakeTheNewTokensPacked) {
  Tensors tensors = paged();
  tensors["q"] = tensor({3, 8, 64});
  tensors["gates"] = tensor({3, 8, 3});
  for (const char *branch : {"cmp", "sel", "win"}) {
    tensors[std::string("k_") + branch] = tensor({3, 2, 64});
    tensors[std::string("v_") + branch] = tensor({3, 2, 48});
  }
  tensors["cu_seqlens_q"] = lengths({0, 3, 3});
  tensors["cu_seqlens_k"] = lengths({0, 7, 9}); // the cache knows: not looked at
  const Result<OperatorFile> file = read(Operator::kDecode, tensors);
  ASSERT_TRUE(file) << file.status().toString();
  EXPECT_EQ(file->inputs.spec.layout, Layout::kPacked);
  EXPECT_EQ(file->inputs.maxima.tokensQ, 3);
  EXPECT_EQ(file->inputs.maxima.seqlenQ, 3);
  EXPECT_FALSE(file->inputs.tensors.contains(TensorName::kCuSeqlensK));
}

TEST(KvCacheFile, WithoutPoolsOfTokensTheLengthsSayIt) {
  Tensors tensors = contiguous();
  tensors["k_comp_cache"] = tensor({2, 8, 2, 64});
  tensors["v_comp_cache"] = tensor({2, 8, 2, 48});
  const Result<OperatorFile> file = read(Operator::kDecode, tensors, R"({"branches": ["cmp"]})");
  ASSERT_TRUE(file) << file.status().toString();
  EXPECT_EQ(file->inputs.maxima.seqlenK, 152);
  EXPECT_FALSE(file->inputs.tensors.contains(TensorName::kKSelCache));
}

struct Wrong {
  std::string name;
  Tensors tensors;
  std::string config, reason;
};

class WrongCacheFile : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongCacheFile, IsAClearError) {
  const Wrong &wrong = GetParam();
  const Result<OperatorFile> file = read(Operator::kDecode, wrong.tensors, wrong.config);
  ASSERT_FALSE(file) << "expected: " << wrong.reason;
  EXPECT_EQ(file.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(file.status().toString().find(wrong.reason), std::string::npos)
      << file.status().toString() << "\nexpected: " << wrong.reason;
}

std::vector<Wrong> wrongFiles() {
  std::vector<Wrong> table;
  auto add = [&](std::string name, Tensors tensors, std::string config, std::string reason) {
    table.push_back({std::move(name), std::move(tensors), std::move(config), std::move(reason)});
  };
  const Tensors c = contiguous(), p = paged();
  // What is not there.
  add("NoLengths", without(c, "cache_seqlens"), "{}", "has no tensor \"cache_seqlens\"");
  add("NoPool", without(c, "v_win_cache"), "{}", "has no tensor \"v_cache\"");
  add("NoRing", without(c, "k_raw"), "{}", "has no tensor \"k_raw\"");
  add("NoBlocks", without(c, "k_comp_cache"), "{}", "has no tensor \"k_comp_cache\"");
  add("NoNewKeys", without(c, "k_sel"), "{}", "has no tensor \"k\"");
  // Types.
  add("DtypeOfPool", with(c, "k_sel_cache", tensor({2, 200, 2, 64}, DType::kF16)), "{}",
      "k_sel_cache = fp16: must have the dtype of q, bf16");
  add("DtypeOfLengths", with(c, "cache_seqlens", tensor({2})), "{}", "cache_seqlens = bf16: must be int32");
  add("DtypeOfTable", with(p, "block_table", tensor({2, 3})), "{}", "block_table = bf16: must be int32");
  // Ranks.
  add("NewTokensWithoutBatch", with(c, "q", tensor({2, 8, 64})), "{}",
      "q = [2, 8, 64]: must be [batch, time, query_heads, qk_dim]");
  add("RankOfPool", with(c, "k_sel_cache", tensor({200, 2, 64})), "{}",
      "k_sel_cache = [200, 2, 64]: must be [batch, room, kv_heads, qk_dim], as block_table is not there");
  add("RankOfPages", with(p, "v_comp_cache", tensor({4, 2, 48})), "{}",
      "v_comp_cache = [4, 2, 48]: must be [pages, page_size / cmp_stride, kv_heads, v_dim], as block_table is there");
  add("RankOfRing", with(c, "v_raw", tensor({32, 2, 48})), "{}",
      "v_raw = [32, 2, 48]: must be [batch, cmp_block, kv_heads, v_dim]");
  add("RankOfLengths", with(c, "cache_seqlens", lengths({1, 2, 3})), "{}",
      "cache_seqlens = [3]: must be [batch], batch = 2");
  add("RankOfTable", with(p, "block_table", pageNumbers({6})), "{}",
      "block_table = [6]: must be [batch, pages of a sequence], batch = 2");
  // Extents.
  add("Heads", with(c, "k_win_cache", tensor({2, 200, 1, 64})), "{}", "dimension 2 must be 2 (kv_heads, as in k_cmp)");
  add("HeadSize", with(c, "v_raw", tensor({2, 32, 2, 64})), "{}", "v_raw = [2, 32, 2, 64]: dimension 3 must be 48");
  add("BatchOfPool", with(c, "k_sel_cache", tensor({3, 200, 2, 64})), "{}",
      "k_sel_cache = [3, 200, 2, 64]: dimension 0 must be 2 (batch)");
  add("BatchOfRing", with(p, "k_raw", tensor({3, 32, 2, 64})), "{}", "k_raw = [3, 32, 2, 64]: dimension 0 must be 2");
  add("Room", with(c, "v_win_cache", tensor({2, 199, 2, 48})), "{}",
      "v_win_cache = [2, 199, 2, 48]: dimension 1 must be 200 (room, as in k_sel_cache)");
  add("Blocks", with(c, "k_comp_cache", tensor({2, 10, 2, 64})), "{}",
      "dimension 1 must be at least 11, the compressed blocks of 200 tokens");
  add("Ring", with(c, "k_raw", tensor({2, 31, 2, 64})), "{}", "dimension 1 must be 32 (cmp_block)");
  add("Pages", with(p, "v_sel_cache", tensor({4, 64, 2, 48})), "{}",
      "v_sel_cache = [4, 64, 2, 48]: dimension 0 must be 5 (pages, as in k_sel_cache)");
  add("PageOfAnotherSize", with(p, "v_win_cache", tensor({5, 128, 2, 48})), "{}",
      "v_win_cache = [5, 128, 2, 48]: dimension 1 must be 64 (page_size)");
  add("PageOfBlocks", with(p, "k_comp_cache", tensor({5, 8, 2, 64})), "{}",
      "k_comp_cache = [5, 8, 2, 64]: dimension 1 must be 4 (page_size / cmp_stride)");
  add("NoPage", with(p, "k_sel_cache", tensor({5, 0, 2, 64})), "{}", "dimension 1 must be that of a page");
  add("TimeOfNewTokens", with(c, "gates", tensor({2, 3, 8, 3})), "{}", "must have the time of q, 2");
  Tensors longer = c;
  for (const char *branch : {"cmp", "sel", "win"}) {
    longer[std::string("k_") + branch] = tensor({2, 3, 2, 64});
    longer[std::string("v_") + branch] = tensor({2, 3, 2, 48});
  }
  add("MoreKeysThanQueries", longer, "{}", "must have the time of q, 2: new tokens are queries and keys alike");
  // The configuration.
  add("PageSize", p, R"({"page_size": 128})", "page_size = 128: must agree with the tensors, which say 64");
  add("PagesWithoutATable", c, R"({"page_size": 64})",
      "page_size = 64: must agree with the tensors, which say 0 (hint: a cache in pages has a block_table)");
  add("PageRule", p, R"({"sel_block": 48})", "page_size = 64: must be a multiple of sel_block = 48");
  add("CmpBlock", c, R"({"cmp_block": 64})", "k_raw = [2, 32, 2, 64]: dimension 1 must be 64 (cmp_block)");
  return table;
}

INSTANTIATE_TEST_SUITE_P(Files, WrongCacheFile, ::testing::ValuesIn(wrongFiles()),
                         [](const auto &info) { return info.param.name; });

} // namespace
} // namespace nsa::tools
