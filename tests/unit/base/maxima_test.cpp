// The maxima of a plan: their rules, by operator and layout.
#include "tests/unit/base/valid_spec.h"

#include <gtest/gtest.h>

#include <limits>

namespace nsa {
namespace {

TEST(Maxima, EveryBrokenRuleNamesFieldAndValue) {
  Spec spec = validSpec();
  ASSERT_TRUE(kMaxima.validate(spec).isOk());
  constexpr int64_t kTooLarge = int64_t{1} << 31;
  struct {
    int64_t Maxima::*member;
    int64_t value;
    std::string field;
  } cases[] = {{&Maxima::batch, 0, "max_batch"},
               {&Maxima::tokensQ, -1, "max_tokens_q"},
               {&Maxima::seqlenQ, -1, "max_seqlen_q"},
               {&Maxima::seqlenK, -5, "max_seqlen_k"},
               {&Maxima::batch, kTooLarge, "max_batch"},
               {&Maxima::tokensQ, kTooLarge, "max_tokens_q"},
               {&Maxima::seqlenQ, kTooLarge, "max_seqlen_q"},
               {&Maxima::seqlenK, kTooLarge, "max_seqlen_k"},
               {&Maxima::seqlenQ, (kTooLarge - 128) / 8 + 1, "max_seqlen_q"}, // eight rows a query
               {&Maxima::seqlenK, kTooLarge - 127, "max_seqlen_k"}};
  spec.layout = Layout::kPacked;
  for (const auto &c : cases) {
    Maxima maxima = kMaxima;
    maxima.*c.member = c.value;
    Status status = maxima.validate(spec);
    ASSERT_FALSE(status.isOk()) << c.field << " " << c.value;
    EXPECT_EQ(status.error().field, c.field);
    EXPECT_EQ(status.error().value, std::to_string(c.value));
  }
}

TEST(Maxima, LegalCorners) {
  Spec spec = validSpec();
  EXPECT_TRUE((Maxima{1, 0, 0, 0}).validate(spec).isOk()) << "T = 0 and T_q = 0 are legal";
  EXPECT_TRUE((Maxima{1, 0, ((int64_t{1} << 31) - 128) / 8, (int64_t{1} << 31) - 128}).validate(spec).isOk());
  Maxima manyTokens{1024, int64_t{1} << 32, 1 << 22, 1 << 22};
  EXPECT_TRUE(manyTokens.validate(spec).isOk()) << "dense totals are 64-bit";
}

// A sequence's queries are its last tokens.
TEST(Maxima, NoMoreQueriesThanKeysWhereAnOperatorHasBoth) {
  for (const OperatorDef &def : publicOperators())
    for (const Layout layout : {Layout::kDense, Layout::kPacked}) {
      Spec spec = validSpec();
      spec.op = def.op;
      spec.layout = layout;
      SCOPED_TRACE(std::string(operatorName(spec.op)) + " " + std::string(layoutName(layout)));
      EXPECT_TRUE((Maxima{2, 200, 100, 100}).validate(spec).isOk());
      const Status status = Maxima{2, 202, 101, 100}.validate(spec);
      if (!def.hasQueries() || !def.hasKeys()) {
        EXPECT_TRUE(status.isOk()) << status.toString() << ": it has no queries, or no keys";
        continue;
      }
      ASSERT_EQ(status.code(), ErrorCode::kInvalidArgument);
      EXPECT_EQ(status.error().field, "max_seqlen_q");
      EXPECT_EQ(status.error().value, "101");
      EXPECT_NE(status.error().rule.find("at most max_seqlen_k = 100"), std::string::npos) << status.toString();
    }
}

// A kernel that counts blocks counts up to a block past the last key.
TEST(Maxima, KeysOfLongBlocksAreFewer) {
  Spec spec = validSpec();
  constexpr int64_t kAll = int64_t{1} << 31;
  const struct {
    Operator op;
    int32_t selBlock, cmpStride;
    int64_t most;
  } cases[] = {{Operator::kSel, 64, 16, kAll - 128},       {Operator::kSel, 256, 1024, kAll - 256},
               {Operator::kInvert, 4096, 16, kAll - 4096}, {Operator::kCompressBwd, 4096, 512, kAll - 512},
               {Operator::kNsa, 1024, 512, kAll - 1024},   {Operator::kWindow, 4096, 512, kAll - 128}};
  for (const auto &c : cases) {
    spec.op = c.op;
    spec.selBlock = c.selBlock;
    spec.cmpStride = c.cmpStride;
    SCOPED_TRACE(std::string(operatorName(c.op)) + " sel_block=" + std::to_string(c.selBlock));
    EXPECT_TRUE((Maxima{1, 1, 1, c.most}).validate(spec).isOk()) << (Maxima{1, 1, 1, c.most}).validate(spec).toString();
    const Status status = Maxima{1, 1, 1, c.most + 1}.validate(spec);
    ASSERT_EQ(status.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(status.error().field, "max_seqlen_k");
    EXPECT_EQ(status.error().rule, "must be at most " + std::to_string(c.most) +
                                       (c.most < kAll - 128 ? ", which is 2^31 less the tokens of a block" : ""));
  }
  spec.op = Operator::kCompressBwd;
  spec.cmpKind = CmpKind::kLinear;
  spec.cmpStride = 16;
  constexpr int64_t kMost = kAll - 1024;
  EXPECT_TRUE((Maxima{1, 1, 1, kMost}).validate(spec).isOk()) << (Maxima{1, 1, 1, kMost}).validate(spec).toString();
  EXPECT_EQ(
      (Maxima{1, 1, 1, kMost + 1}).validate(spec).toString(),
      "invalid argument: max_seqlen_k = 2147482625: must be at most 2147482624, which is 2^31 - 1024, with gradients "
      "of phi's weights");
}

// The kernel of combine reads no lengths, so the packed tokens are one sequence.
TEST(Maxima, ThePackedRowsOfAnOperatorWithoutLengthsFit32Bits) {
  Spec spec = validSpec();
  spec.op = Operator::kCombine;
  spec.layout = Layout::kPacked;
  const int64_t most = ((int64_t{1} << 31) - 128) / spec.group();
  EXPECT_TRUE((Maxima{1, most, 1, 1}).validate(spec).isOk());
  const Status status = Maxima{1, most + 1, 1, 1}.validate(spec);
  ASSERT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(status.error().field, "max_tokens_q");
  EXPECT_EQ(status.error().value, std::to_string(most + 1));
  EXPECT_EQ(status.error().rule,
            "must be at most " + std::to_string(most) + " for combine with query_heads / kv_heads = 8");
  spec.op = Operator::kWindow;
  EXPECT_TRUE((Maxima{1, most + 1, 1, 1}).validate(spec).isOk()) << "its sequences are bounded one by one";
}

// An error names the largest of the numbers, and the maxima that make it.
TEST(Maxima, InversesOfListsAreNumberedIn32Bits) {
  Spec spec = validSpec(); // sel_block 64, sel_count 16
  spec.op = Operator::kSelBwd;
  const struct {
    Layout layout;
    Maxima legal, tooLarge;
    std::string value, rule;
  } cases[] = {
      {Layout::kDense,
       {1024, 1024 * 131071, 131071, 131072},
       {1024, 1024 * 131072, 131072, 131072},
       "max_batch=1024 max_seqlen_q=131072 sel_count=16",
       "the entries of all lists, max_batch * max_seqlen_q * sel_count, must be at most 2147483520, and are "
       "2147483648"},
      {Layout::kDense,
       {1, 134086720, 134086720, 134086720},
       {1, 134086784, 134086784, 134086784},
       "max_seqlen_q=134086784 max_seqlen_k=134086784 sel_block=64 sel_count=16",
       "the places of block_index, ceil(max_seqlen_k / sel_block) + 1 + max_seqlen_q * sel_count, must be at most "
       "2147483520, and are 2147483651"},
      {Layout::kPacked,
       {1, 134217655, 65536, 65536},
       {1, 134217656, 65536, 65536},
       "max_batch=1 max_tokens_q=134217656 max_seqlen_k=65536 sel_block=64 sel_count=16",
       "the places of block_index, max_batch * (floor(max_seqlen_k / sel_block) + 3) + max_tokens_q * sel_count, must "
       "be at most 2147483520, and are 2147483523"},
      {Layout::kPacked,
       {32672, 1024, 1, 65536},
       {32673, 1024, 1, 65536},
       "max_batch=32673 max_tokens_q=1024 max_seqlen_k=65536 sel_block=64 sel_count=16",
       "the rows that are stored for pieces of the lists, (max_batch * (floor(max_seqlen_k / sel_block) + 3) + "
       "floor(max_tokens_q * sel_count / 1024)) * sel_block, must be at most 2147483520, and are 2147531968"},
  };
  for (const auto &c : cases) {
    SCOPED_TRACE(c.value);
    spec.layout = c.layout;
    EXPECT_TRUE(c.legal.validate(spec).isOk()) << c.legal.validate(spec).toString();
    const Status status = c.tooLarge.validate(spec);
    ASSERT_EQ(status.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(status.error().field, "maxima");
    EXPECT_EQ(status.error().value, c.value);
    EXPECT_EQ(status.error().rule, c.rule);
    EXPECT_EQ(status.error().hint, "split the batch into several calls");
    spec.op = Operator::kSel; // reads lists and inverts none
    EXPECT_TRUE(c.tooLarge.validate(spec).isOk()) << c.tooLarge.validate(spec).toString();
    spec.op = Operator::kSelBwd;
  }
  // Rows of parts, for the keys of all sequences.
  for (const Operator op : {Operator::kNsaBwd, Operator::kWindowBwd}) {
    Spec own;
    own.op = op;
    own.queryHeads = own.kvHeads = 1;
    own.qkDim = own.vDim = 8;
    own.branches = kBranchWin;
    EXPECT_TRUE((Maxima{65535, 0, 1, 32768}.validate(own).isOk()));
    const Status status = Maxima{65536, 0, 1, 32768}.validate(own);
    EXPECT_EQ(status.error().field, "max_batch");
    EXPECT_EQ(status.error().value, "65536");
    EXPECT_EQ(status.error().rule, "max_batch * max_seqlen_k must be at most 2147483520 for " +
                                       std::string(operatorName(op)) + " with max_seqlen_k = 32768");
  }
  // The number itself has more than 63 bits.
  spec.layout = Layout::kPacked;
  spec.selBlock = std::numeric_limits<int32_t>::max();
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const Status status = Maxima{kMost, kMost, 1, 1}.validate(spec);
  EXPECT_NE(status.error().rule.find("and are more than 9223372036854775807"), std::string::npos) << status.toString();
}

// Decode counts keys in floats, and numbers the rows that it stages in 32 bits.
TEST(Maxima, DecodeHasRulesOfItsOwn) {
  constexpr int64_t kMostKeys = int64_t{1} << 22, kMostRows = (int64_t{1} << 31) - 128;
  Spec spec = validSpec();
  spec.op = Operator::kDecode;
  spec.cmpBlock = 32;
  const struct {
    Layout layout;
    Maxima legal;
    int64_t Maxima::*member; // one more of it is too many
    std::string field, rule;
  } cases[] = {
      {Layout::kDense, {1, 1, 1, kMostKeys}, &Maxima::seqlenK, "max_seqlen_k", "must be at most 4194304 where it"},
      {Layout::kPacked, {1, 1, 1, kMostKeys}, &Maxima::seqlenK, "max_seqlen_k", "must be at most 4194304 where it"},
      // Of each sequence its new tokens and 31 more: 33 and 31, or none and 31 beside as many new ones of all.
      {Layout::kDense, {kMostRows / 64, 0, 33, 4096}, &Maxima::batch, "max_batch", "must be at most 2147483520"},
      {Layout::kPacked, {1, kMostRows - 31, 1, 4096}, &Maxima::tokensQ, "max_batch", "must be at most 2147483520"},
      {Layout::kPacked, {kMostRows / 32, kMostRows / 32, 1, 4096}, &Maxima::batch, "max_batch", "cmp_block - 1 more"},
  };
  for (const auto &c : cases) {
    SCOPED_TRACE(c.field + " " + std::string(layoutName(c.layout)));
    spec.layout = c.layout;
    Maxima maxima = c.legal;
    EXPECT_TRUE(maxima.validate(spec).isOk()) << maxima.validate(spec).toString();
    ++(maxima.*c.member);
    const Status status = maxima.validate(spec);
    ASSERT_EQ(status.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(status.error().field, c.field);
    EXPECT_EQ(status.error().value, std::to_string(c.field == "max_batch" ? maxima.batch : maxima.seqlenK));
    EXPECT_NE(status.error().rule.find(c.rule), std::string::npos) << status.error().rule;
    EXPECT_NE(status.toString().find(status.error().rule), std::string::npos) << status.toString();
    spec.op = Operator::kNsa; // the forward pass has neither
    EXPECT_TRUE(maxima.validate(spec).isOk()) << maxima.validate(spec).toString();
    spec.op = Operator::kDecode;
  }
}

} // namespace
} // namespace nsa
