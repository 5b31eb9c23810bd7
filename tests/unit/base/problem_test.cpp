#include "tests/unit/base/valid_spec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace nsa {
namespace {

TEST(Spec, EveryBrokenRuleNamesFieldAndValue) {
  ASSERT_TRUE(validSpec().validate().isOk());
  struct {
    std::function<void(Spec &)> change;
    std::string field, value;
  } cases[] = {
      {[](Spec &s) { s.op = static_cast<Operator>(operatorTable().size()); }, "op",
       std::to_string(operatorTable().size())},
      {[](Spec &s) { s.dtype = DType::kI32; }, "dtype", "int32"},
      {[](Spec &s) { s.dtype = DType::kFp8E4M3; }, "dtype", "fp8_e4m3"},
      {[](Spec &s) { s.dtype = static_cast<DType>(-1); }, "dtype", "-1"},
      {[](Spec &s) { s.cacheDtype = DType::kFp8E4M3; }, "cache_dtype", "fp8_e4m3"},
      {[](Spec &s) { s.cacheDtype = DType::kFp8E5M2; }, "cache_dtype", "fp8_e5m2"},
      {[](Spec &s) { s.layout = static_cast<Layout>(2); }, "layout", "2"},
      {[](Spec &s) { s.queryHeads = 0; }, "query_heads", "0"},
      {[](Spec &s) { s.kvHeads = -1; }, "kv_heads", "-1"},
      {[](Spec &s) { s.qkDim = 0; }, "qk_dim", "0"},
      {[](Spec &s) { s.vDim = 0; }, "v_dim", "0"},
      {[](Spec &s) { s.queryHeads = 33; }, "query_heads", "33"},
      {[](Spec &s) { s.kvHeads = 64; }, "query_heads", "32"},
      {[](Spec &s) { s.queryHeads = 4 * 129; }, "query_heads", "516"},
      {[](Spec &s) { s.window = 0; }, "window", "0"},
      {[](Spec &s) { s.scale = -0.5f; }, "scale", "-0.5"},
      {[](Spec &s) { s.scale = INFINITY; }, "scale", "inf"},
      {[](Spec &s) { s.scale = NAN; }, "scale", "nan"},
      {[](Spec &s) { s.scale = 3e38f; }, "scale", "3e+38"},
      {[](Spec &s) { s.scale = 65537; }, "scale", "65537"},
  };
  for (const auto &c : cases) {
    Spec spec = validSpec();
    c.change(spec);
    Status status = spec.validate();
    ASSERT_FALSE(status.isOk()) << c.field << " " << c.value;
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(status.error().field, c.field);
    EXPECT_EQ(status.error().value, c.value);
    EXPECT_FALSE(status.error().rule.empty());
  }
}

TEST(Spec, EveryBrokenRuleOfTheOtherOperators) {
  struct {
    Operator op;
    std::function<void(Spec &)> change;
    std::string field, value;
  } cases[] = {
      {Operator::kCompress, [](Spec &s) { s.cmpStride = 0; }, "cmp_stride", "0"},
      {Operator::kCmp, [](Spec &s) { s.cmpBlock = 0; }, "cmp_block", "0"},
      {Operator::kCmp, [](Spec &s) { s.cmpBlock = 33; }, "cmp_block", "33"},
      {Operator::kSelect, [](Spec &s) { s.selBlock = 60; }, "sel_block", "60"},
      {Operator::kSel, [](Spec &s) { s.selBlock = 0; }, "sel_block", "0"},
      {Operator::kSel, [](Spec &s) { s.selCount = 0; }, "sel_count", "0"},
      {Operator::kSel, [](Spec &s) { s.selCount = 129; }, "sel_count", "129"},
      {Operator::kSelect, [](Spec &s) { s.initBlocks = -1; }, "init_blocks", "-1"},
      {Operator::kSelect, [](Spec &s) { s.localBlocks = 0; }, "local_blocks", "0"},
      {Operator::kNsa, [](Spec &s) { s.selCount = 2; }, "sel_count", "2"},
      {Operator::kNsa, [](Spec &s) { s.window = 0; }, "window", "0"},
      {Operator::kCompress, [](Spec &s) { s.cmpKind = static_cast<CmpKind>(3); }, "cmp_kind", "3"},
      {Operator::kCompress, [](Spec &s) { s.cmpKind = CmpKind::kMlp; }, "mlp_hidden", "0"},
      {Operator::kCompress,
       [](Spec &s) {
         s.cmpKind = CmpKind::kMlp;
         s.mlpHidden = 8;
         s.mlpActivation = static_cast<Activation>(-1);
       },
       "mlp_activation", "-1"},
      {Operator::kDecode, [](Spec &s) { s.pageSize = -64; }, "page_size", "-64"},
      {Operator::kDecode, [](Spec &s) { s.pageSize = 96; }, "page_size", "96"},
      {Operator::kDecode, [](Spec &s) { s.window = 0; }, "window", "0"},
      {Operator::kCombine, [](Spec &s) { s.gate = static_cast<Gate>(3); }, "gate", "3"},
      {Operator::kCombine, [](Spec &s) { s.branches = 0; }, "branches", "0"},
      {Operator::kCombine, [](Spec &s) { s.branches = 8; }, "branches", "8"},
  };
  for (const auto &c : cases) {
    Spec spec = validSpec();
    spec.op = c.op;
    ASSERT_TRUE(spec.validate().isOk()) << spec.validate().toString();
    c.change(spec);
    Status status = spec.validate();
    ASSERT_FALSE(status.isOk()) << c.field << " " << c.value;
    EXPECT_EQ(status.error().field, c.field);
    EXPECT_EQ(status.error().value, c.value);
    EXPECT_FALSE(status.error().rule.empty());
  }
}

TEST(Spec, AListHasAtMost128Blocks) {
  for (const Operator op : {Operator::kSelect, Operator::kSel, Operator::kNsa, Operator::kDecode})
    for (const int32_t count : {65, 97, 128}) {
      Spec spec = validSpec();
      spec.op = op;
      spec.selCount = count;
      spec.localBlocks = count - spec.initBlocks;
      EXPECT_TRUE(spec.validate().isOk()) << spec.validate().toString();
    }
  Spec spec = validSpec();
  spec.op = Operator::kNsa;
  spec.selCount = Spec::kMostSelCount + 1;
  EXPECT_EQ(spec.validate().error().rule, "must be at most 128");
}

TEST(Spec, AnOperatorReadsOnlyItsOwnFields) {
  Spec spec = validSpec();
  spec.selCount = spec.cmpStride = spec.localBlocks = spec.branches = 0;
  EXPECT_TRUE(spec.validate().isOk()); // window reads none of them
  spec = validSpec();
  spec.op = Operator::kCompress;
  spec.queryHeads = 0;
  EXPECT_TRUE(spec.validate().isOk()); // compression sees no query
}

TEST(Spec, HasATypeForEachRole) {
  Spec spec = validSpec();
  const auto expectTypes = [&](DType keyValue) {
    const ElementTypes types = spec.types();
    EXPECT_EQ(types.of(TensorRole::kIo), DType::kBf16);
    EXPECT_EQ(types.of(TensorRole::kKeyValue), keyValue);
    EXPECT_EQ(types.of(TensorRole::kScale), DType::kF32);
    EXPECT_EQ(types.of(TensorRole::kStatistics), DType::kF32);
    EXPECT_EQ(types.of(TensorRole::kIndex), DType::kI32);
  };
  expectTypes(DType::kBf16);
  spec.cacheDtype = DType::kFp8E4M3;
  expectTypes(DType::kFp8E4M3);
  // A type that is written out and is the spec's dtype is no other spec.
  spec.cacheDtype = DType::kBf16;
  EXPECT_TRUE(spec.validate().isOk());
}

TEST(Spec, CompressedBlocksBeginWithTheFirstWholeBlock) {
  Spec spec;
  EXPECT_EQ(spec.compressedBlocks(0), 0);
  EXPECT_EQ(spec.compressedBlocks(31), 0);
  EXPECT_EQ(spec.compressedBlocks(32), 1);
  EXPECT_EQ(spec.compressedBlocks(47), 1);
  EXPECT_EQ(spec.compressedBlocks(48), 2);
}

TEST(Spec, LegalCorners) {
  for (int group : {1, 2, 3, 4, 6, 8, 16, 32, 64, 128}) {
    Spec spec = validSpec();
    spec.queryHeads = group * spec.kvHeads;
    EXPECT_TRUE(spec.validate().isOk()) << group;
    EXPECT_EQ(spec.group(), group);
  }
  Spec spec = validSpec();
  spec.qkDim = 37; // odd head sizes are computed
  spec.window = std::numeric_limits<int32_t>::max();
  EXPECT_TRUE(spec.validate().isOk());
  spec.op = Operator::kDense;
  spec.window = 0; // dense ignores it
  EXPECT_TRUE(spec.validate().isOk());
}

TEST(Spec, ScaleComesFromQkDimOnly) {
  Spec spec = validSpec();
  EXPECT_FLOAT_EQ(spec.effectiveScale(), 1.0f / std::sqrt(192.0f));
  spec.scale = 0.25f;
  EXPECT_EQ(spec.effectiveScale(), 0.25f);
}

TEST(Names, RoundTrip) {
  for (const OperatorDef &def : operatorTable())
    EXPECT_EQ(*parseOperator(def.name), def.op);
  for (DType dtype : {DType::kBf16, DType::kF16, DType::kF32, DType::kI32})
    EXPECT_EQ(*parseDType(dtypeName(dtype)), dtype);
  for (Layout layout : {Layout::kDense, Layout::kPacked})
    EXPECT_EQ(*parseLayout(layoutName(layout)), layout);
  EXPECT_EQ(dtypeBytes(DType::kBf16), 2);
  EXPECT_EQ(dtypeBytes(DType::kF16), 2);
  EXPECT_EQ(dtypeBytes(DType::kF32), 4);
  EXPECT_EQ(dtypeBytes(DType::kI32), 4);
  EXPECT_EQ(dtypeBytes(DType::kFp8E4M3), 1);
  EXPECT_EQ(dtypeBytes(DType::kFp8E5M2), 1);
  EXPECT_FALSE(parseDType(dtypeName(DType::kFp8E4M3)).isOk()) << "no caller's tensor has this type";
  EXPECT_EQ(parseDType("float16").status().toString(),
            "invalid argument: dtype = 'float16': must be one of bf16, fp16, fp32, int32");
  EXPECT_EQ(parseOperator("Window").status().error().field, "op");
  EXPECT_EQ(parseLayout("").status().error().field, "layout");
}

// The key is in every database: a change here is a new cache.
TEST(Problem, KeyIsFixed) {
  EXPECT_EQ(Problem::make(validSpec(), kMaxima).key(),
            "window dtype=bf16 group=8 many_queries=1 packed=0 page_size=0 qk_dim=192 v_dim=128 | "
            "batch=2 kv_heads=4 seqlen_k=2048 seqlen_q=2048 window=512");
}

// No plan has such a spec yet, but it has a problem of its own.
TEST(Problem, ATypeOfItsOwnIsPartOfTheKey) {
  Spec spec = validSpec();
  const auto keyOf = [&] {
    const OperatorDef &def = definitionOf(spec.op);
    return Problem::take(spec, kMaxima, def.fields, def.constants).key();
  };
  const std::string plain = keyOf();
  spec.cacheDtype = spec.dtype;
  EXPECT_EQ(keyOf(), plain);
  spec.cacheDtype = DType::kFp8E4M3;
  EXPECT_EQ(keyOf(), "window cache_dtype=fp8_e4m3" + plain.substr(plain.find(' ')));
  spec.op = Operator::kCombine; // reads no cache
  EXPECT_EQ(keyOf().find("cache_dtype"), std::string::npos);
}

TEST(Problem, EachOperatorCompilesInWhatItReads) {
  Spec spec = validSpec();
  auto keyOf = [&](Operator op) {
    spec.op = op;
    return Problem::make(spec, kMaxima).key();
  };
  EXPECT_EQ(keyOf(Operator::kSelect), "select cmp_block=32 cmp_stride=16 dtype=bf16 group=8 packed=0 page_size=0 "
                                      "qk_dim=192 sel_block=64 sel_count=16 | "
                                      "batch=2 kv_heads=4 seqlen_k=2048 seqlen_q=2048");
  EXPECT_EQ(keyOf(Operator::kCompress), "compress cmp_block=32 cmp_kind=mean cmp_stride=16 dtype=bf16 "
                                        "mlp_activation=relu mlp_hidden=1 packed=0 page_size=0 "
                                        "qk_dim=192 v_dim=128 | batch=2 kv_heads=4 seqlen_k=2048 seqlen_q=2048");
  EXPECT_EQ(keyOf(Operator::kCombine), "combine dtype=bf16 gate=value gate_per_group=0 group=8 packed=0 v_dim=128 | "
                                       "batch=2 kv_heads=4 seqlen_k=2048 seqlen_q=2048");
  EXPECT_EQ(keyOf(Operator::kRotate), "rotate dtype=bf16 packed=0 qk_dim=192 rotary_dims=192 rotary_style=half | "
                                      "batch=2 kv_heads=4 seqlen_k=2048 seqlen_q=2048");
  EXPECT_EQ(keyOf(Operator::kSequences), "sequences cmp_block=32 cmp_stride=16 dtype=fp32 | batch=2");
  EXPECT_EQ(keyOf(Operator::kCacheSequences), "cache_sequences cmp_block=32 cmp_stride=16 dtype=fp32 page_size=0 | "
                                              "batch=2");
  spec.pageSize = 128;
  EXPECT_EQ(keyOf(Operator::kCacheSequences), "cache_sequences cmp_block=32 cmp_stride=16 dtype=fp32 page_size=128 | "
                                              "batch=2");
  EXPECT_EQ(keyOf(Operator::kAppend),
            "append cmp_block=32 cmp_stride=16 dtype=bf16 page_size=128 qk_dim=192 v_dim=128 | "
            "batch=2 kv_heads=4 seqlen_k=2048 seqlen_q=2048");
  EXPECT_EQ(keyOf(Operator::kSel), "sel dtype=bf16 group=8 packed=0 page_size=128 qk_dim=192 sel_block=64 sel_count=16 "
                                   "v_dim=128 | batch=2 kv_heads=4 seqlen_k=2048 seqlen_q=2048");
}

// 128 programs of 128 rows; rows are of all sequences, key heads, queries and heads of a group.
TEST(Problem, TellsAttentionWhetherQueriesAreMany) {
  auto many = [](const Spec &spec, const Maxima &maxima) {
    const Problem problem = Problem::make(spec, maxima);
    const std::map<std::string, std::string> fixed = problem.fixed();
    auto found = fixed.find("many_queries");
    return found == fixed.end() ? "absent" : found->second;
  };
  Spec spec = validSpec();
  spec.queryHeads = 64;
  for (const Operator op : {Operator::kDense, Operator::kWindow, Operator::kCmp}) {
    spec.op = op;
    EXPECT_EQ(many(spec, {1, 64, 64, 64}), "0") << "4096 rows";
    EXPECT_EQ(many(spec, {1, 128, 128, 65536}), "0") << "half of them, whatever the keys";
    EXPECT_EQ(many(spec, {1, 129, 129, 129}), "1") << "the bucket of 256 queries";
    EXPECT_EQ(many(spec, {1, 256, 256, 256}), "1");
    EXPECT_EQ(many(spec, {2, 256, 128, 128}), "1") << "of two sequences";
    EXPECT_EQ(many(spec, {1, 0, 0, 64}), "0");
    EXPECT_EQ(many(spec, {1, 0, 16384, 16384}), "1");
    // 2^62 rows and more.
    EXPECT_EQ(many(spec, {(int64_t{1} << 31) - 1, 1, int64_t{1} << 26, int64_t{1} << 26}), "1");
    EXPECT_EQ(many(spec, {16384, 0, 0, 1}), "1");
  }
  spec.queryHeads = spec.kvHeads = 1;
  EXPECT_EQ(many(spec, {1, 8192, 8192, 8192}), "0");
  EXPECT_EQ(many(spec, {1, 8193, 8193, 8193}), "1");
  spec.op = Operator::kSel;
  EXPECT_EQ(many(spec, {1, 64, 64, 64}), "absent");
}

TEST(Problem, WhatCannotChangeTheKernelIsNotInTheKey) {
  Spec spec = validSpec();
  std::string key = Problem::make(spec, kMaxima).key();
  spec.scale = 0.5f;
  EXPECT_EQ(Problem::make(spec, kMaxima).key(), key);
  EXPECT_EQ(Problem::make(spec, {2, 1, 1025, 1025}).key(), key) << "lengths are buckets";
  spec.window = 511;
  EXPECT_EQ(Problem::make(spec, kMaxima).key(), key);
  spec.window = 513;
  EXPECT_NE(Problem::make(spec, kMaxima).key(), key);
  spec.window = 100000;
  std::string beyond = Problem::make(spec, kMaxima).key();
  spec.window = 2048;
  EXPECT_EQ(Problem::make(spec, kMaxima).key(), beyond);
  spec.op = Operator::kDense;
  std::string dense = Problem::make(spec, kMaxima).key();
  EXPECT_EQ(dense.find("window"), std::string::npos);
  EXPECT_NE(Problem::make(spec, {2, 1, 1024, 2048}).key(), dense);
  EXPECT_TRUE(Problem::make(spec, {1, 0, 0, 0}).key().ends_with("batch=1 kv_heads=4 seqlen_k=1 seqlen_q=1"));
}

} // namespace
} // namespace nsa
