// The rules of a call's tensors, for every operator: what is well-formed passes, and each broken rule names the tensor,
// the value and the rule. (c_api_test holds the same of dense and window through the C ABI.)
#include "tests/unit/runtime/test_call.h"

#include <functional>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

using namespace nsa;

namespace {

using T = TensorName;
using test::TestCall;

std::vector<Operator> operators() {
  std::vector<Operator> result;
  for (const OperatorDef &def : publicOperators())
    result.push_back(def.op);
  return result;
}

TEST(Call, WellFormedCallsPass) {
  for (const Operator op : operators())
    for (Layout layout : {Layout::kDense, Layout::kPacked})
      for (CmpKind kind : {CmpKind::kMean, CmpKind::kLinear, CmpKind::kMlp}) {
        TestCall call(op, layout);
        call.spec.cmpKind = kind;
        call.bindAll();
        EXPECT_TRUE(call.check().isOk()) << operatorName(op) << " " << layoutName(layout) << ": "
                                         << call.check().toString();
      }
}

// What tensor maps are made of: how many rows a view's memory has, where they can be told.
TEST(Call, ViewsKnowTheirRows) {
  const auto rows = [](TestCall &call, T name) {
    Call checked;
    const CallRules rules(call.spec, call.maxima);
    EXPECT_TRUE(prepareCall(rules, call.bindings, checked).isOk());
    return checked[name].rows;
  };
  TestCall dense(Operator::kDense, Layout::kDense), packed(Operator::kDense, Layout::kPacked);
  EXPECT_EQ(rows(dense, T::kQ), 64);
  EXPECT_EQ(rows(dense, T::kKWin), 96);
  EXPECT_EQ(rows(packed, T::kQ), 80) << "of all sequences";
  EXPECT_EQ(rows(packed, T::kKWin), 120);
  dense.bindings[T::kKWin].strides[0] = 0;
  EXPECT_EQ(rows(dense, T::kKWin), 0) << "two sequences in one place";
  TestCall decode(Operator::kDecode, Layout::kDense);
  EXPECT_EQ(rows(decode, T::kKSelCache), TestCall::kRoom);
  EXPECT_EQ(rows(decode, T::kKCompCache), decode.spec.compressedBlocks(TestCall::kRoom));
  EXPECT_EQ(rows(decode, T::kKRaw), 0) << "a ring has no order";
}

TEST(Call, EachRequiredTensorIsMissedByName) {
  for (const Operator op : operators()) {
    TestCall complete(op, Layout::kDense);
    for (const Operand &operand : operandsOf(op)) {
      const bool hasPartner = operand.name == T::kQCmp || operand.name == T::kDQCmp || operand.name == T::kKComp ||
                              operand.name == T::kVComp;
      if (!takes(complete.spec, operand.name) || (op == Operator::kNsaBwd && hasPartner))
        continue; // GradientsOfTwoTensorsHaveTwoNames drops both
      TestCall call(op, Layout::kDense);
      call.drop(operand.name);
      if (operand.name == T::kBlockList && operand.isOptional())
        call.drop(T::kBlockIndex); // TheInverseIsMadeOnRequest
      // q stays where it stands for q_cmp.
      const bool isOfPair = operand.name == T::kCos || operand.name == T::kSin; // TablesOfAnglesComeTogether
      const bool served = (operand.isOptional() && !isOfPair) || call.bindings.find(operand.otherwise);
      const Status status = call.check();
      EXPECT_EQ(status.isOk(), served) << operatorName(op) << " without " << tensorName(operand.name);
      if (!served)
        EXPECT_EQ(status.error().field, tensorName(gradientOf(operand.name) ? operand.name : operand.otherwise))
            << operatorName(op);
    }
  }
}

TEST(Call, TablesOfAnglesComeTogether) {
  for (const Operator op : {Operator::kRotate, Operator::kRotateBwd}) {
    TestCall call(op, Layout::kDense);
    call.drop(T::kCos);
    EXPECT_FALSE(call.check().isOk());
    call.drop(T::kSin);
    EXPECT_TRUE(call.check().isOk()) << call.check().toString();
  }
}

TEST(Call, TheInverseIsMadeOnRequest) {
  for (const Operator op : {Operator::kSelect, Operator::kNsa})
    for (const Layout layout : {Layout::kDense, Layout::kPacked}) {
      SCOPED_TRACE(operatorName(op));
      TestCall call(op, layout);
      EXPECT_TRUE(call.bindings.find(T::kBlockIndex) && call.check().isOk()) << call.check().toString();
      // Blocks of 16 tokens. A dense select has 64 tokens, which are its queries.
      const bool packed = layout == Layout::kPacked;
      const int64_t offsets =
          packed ? (op == Operator::kNsa ? 120 : 80) / 16 + 4 : (op == Operator::kNsa ? 96 : 64) / 16 + 1;
      Tensor &index = call.bindings[T::kBlockIndex];
      index.shape[packed ? 1 : 2] = offsets + call.timeQ() * 4 - 1;
      EXPECT_EQ(call.check().error().field, "block_index.shape");
      EXPECT_NE(call.check().error().rule.find(std::to_string(offsets) + " for offsets"), std::string::npos)
          << call.check().toString();
      call.spec.makeIndex = false;
      EXPECT_EQ(call.check().error().field, "block_index");
      EXPECT_EQ(call.check().error().rule, "needs a plan whose spec has make_index = 1");
      EXPECT_EQ(call.check().error().hint, "set make_index, or make it of block_list with the operator invert");
      call.drop(T::kBlockIndex);
      EXPECT_TRUE(call.check().isOk()) << call.check().toString();
    }
  // Lists in the workspace are of a chunk of queries.
  TestCall call(Operator::kNsa, Layout::kDense);
  call.drop(T::kBlockList);
  EXPECT_EQ(call.check().error().field, "block_list");
  EXPECT_EQ(call.check().error().rule, "must be bound with block_index, which is made of it");
}

TEST(Call, OneKAndVServeAllBranches) {
  TestCall call(Operator::kNsa, Layout::kDense);
  for (T name : {T::kKCmp, T::kVCmp, T::kKSel, T::kVSel, T::kKWin, T::kVWin})
    call.drop(name);
  EXPECT_EQ(call.check().error().field, "k");
  call.bind(T::kK);
  EXPECT_EQ(call.check().error().field, "v");
  call.bind(T::kV);
  EXPECT_TRUE(call.check().isOk()) << call.check().toString();
}

// A gradient has the name of the tensor that is read, also where both names are bound.
TEST(Call, GradientsAreOfTheTensorsThatAreRead) {
  TestCall call(Operator::kDenseBwd, Layout::kDense);
  call.bind(T::kK);
  EXPECT_TRUE(call.check().isOk()) << call.check().toString();
  call.bind(T::kDK);
  EXPECT_EQ(call.check().error().field, "d_k");
  EXPECT_EQ(call.check().error().rule, "is the gradient of k, which this call does not read");
  call.drop(T::kDKWin);
  EXPECT_EQ(call.check().error().field, "d_k");
  call.drop(T::kKWin);
  EXPECT_TRUE(call.check().isOk()) << call.check().toString();
  call.drop(T::kDK);
  EXPECT_EQ(call.check().error().field, "d_k");
  EXPECT_EQ(call.check().error().rule, "must be bound");
  call.bind(T::kDKWin);
  EXPECT_EQ(call.check().error().field, "d_k_win");
  EXPECT_EQ(call.check().error().rule, "is the gradient of k_win, which this call does not read");
}

// The hint of a tensor that the forward pass saves names its writer, and that of another tensor does not.
TEST(Call, WhatAGradientReadsHasAWriter) {
  TestCall whole(Operator::kNsaBwd, Layout::kDense), dense(Operator::kDenseBwd, Layout::kDense);
  whole.drop(T::kLseCmp);
  EXPECT_EQ(whole.check().error().field, "lse_cmp");
  EXPECT_EQ(whole.check().error().hint, "the operator nsa writes it");
  dense.drop(T::kLse);
  EXPECT_EQ(dense.check().error().hint, "the operator dense writes it");
  dense.drop(T::kQ);
  EXPECT_EQ(dense.check().error().field, "q");
  EXPECT_EQ(dense.check().error().hint, "");
}

// A gradient of one name does not serve where two tensors are read.
TEST(Call, GradientsOfTwoTensorsHaveTwoNames) {
  TestCall call(Operator::kNsaBwd, Layout::kDense);
  EXPECT_TRUE(call.check().isOk()) << call.check().toString();
  call.drop(T::kDQCmp);
  EXPECT_EQ(call.check().error().field, "d_q_cmp");
  EXPECT_EQ(call.check().error().rule, "must be bound");
  call.drop(T::kQCmp);
  EXPECT_TRUE(call.check().isOk()) << call.check().toString();
  call.drop(T::kKComp);
  EXPECT_EQ(call.check().error().field, "k_comp");
  EXPECT_EQ(call.check().error().rule, "k_comp and v_comp must be bound together");
  call.drop(T::kVComp);
  EXPECT_TRUE(call.check().isOk()) << call.check().toString();
}

// Of tensors that no active branch reads a call takes the gradients, which have the shapes of the tensors, and nothing
// else.
TEST(Call, GradientsAlsoOfWhatNoBranchReads) {
  TestCall call(Operator::kNsaBwd, Layout::kDense);
  call.spec.branches = kBranchCmp;
  call.bindAll();
  EXPECT_TRUE(call.check().isOk()) << call.check().toString();
  call.spec.branches = kBranchSel;
  call.spec.cmpKind = CmpKind::kLinear;
  call.bindAll();
  EXPECT_TRUE(call.check().isOk()) << call.check().toString();
  for (const T name : {T::kQCmp, T::kKCmp, T::kWK, T::kKComp, T::kDW1K}) {
    EXPECT_EQ(call.bindings.find(name), nullptr) << tensorName(name);
    call.bind(name);
    EXPECT_EQ(call.check().error().rule, "is no tensor of operator nsa_bwd with this spec") << tensorName(name);
    call.drop(name);
  }
  for (const T name : {T::kDQCmp, T::kDKCmp, T::kDVWin, T::kDWK, T::kDPeV}) {
    EXPECT_EQ(call.bindings.find(name), nullptr) << tensorName(name);
    call.bind(name);
    EXPECT_TRUE(call.check().isOk()) << call.check().toString();
    Tensor &gradient = call.bindings[name];
    ++gradient.shape[static_cast<size_t>(gradient.rank) - 1];
    EXPECT_EQ(call.check().error().field, std::string(tensorName(name)) + ".shape");
    call.bind(name);
    call.bindings[name].data = call.bindings[T::kQ].data;
    EXPECT_EQ(call.check().error().field, std::string(tensorName(name)) + ".data");
    call.drop(name);
  }
}

// Where each branch has keys of its own, `k` has a gradient if the call binds `k`.
TEST(Call, KeysThatNoBranchReadsHaveAGradient) {
  TestCall call(Operator::kNsaBwd, Layout::kPacked);
  call.bind(T::kDK);
  EXPECT_EQ(call.check().error().field, "d_k");
  EXPECT_EQ(call.check().error().rule, "is the gradient of k, which this call does not read");
  call.bind(T::kK);
  EXPECT_TRUE(call.check().isOk()) << call.check().toString();
}

// Where a compressed block is one token, kernels address blocks as tokens, and the tensor has so many.
TEST(Call, BlocksOfOneTokenBoundTheTokens) {
  for (const int32_t block : {1, 2}) {
    TestCall test(Operator::kCmpBwd, Layout::kPacked);
    test.spec.cmpBlock = test.spec.cmpStride = block;
    test.bindAll();
    Call call;
    const CallRules rules(test.spec, test.maxima);
    ASSERT_TRUE(prepareCall(rules, test.bindings, call).isOk());
    const auto most = static_cast<int64_t>(call.scalars[static_cast<size_t>(Scalar::kTotalK)]);
    EXPECT_EQ(most, block == 1 ? 120 : test.maxima.batch * test.maxima.seqlenK) << "else as many as the plan allows";
  }
}

TEST(Call, BrokenRulesNameTensorValueAndRule) {
  struct Row {
    Operator op;
    Layout layout;
    const char *field, *value, *rule;
    std::function<void(TestCall &)> spoil;
  };
  const Row rows[] = {
      {Operator::kCmp, Layout::kDense, "k_comp.shape", "[2, 8, 2, 24]", "must be 7 (compressed blocks of q_cmp)",
       [](TestCall &c) { c.bindings[T::kKComp].shape[1] = 8; }},
      {Operator::kCmp, Layout::kDense, "v_comp.shape", "[2, 6, 2, 16]", "must be 7 (as k_comp)",
       [](TestCall &c) { c.bindings[T::kVComp].shape[1] = 6; }},
      {Operator::kCompress, Layout::kDense, "k_comp.shape", "[2, 10, 2, 24]", "must be 11 (compressed blocks of k_cmp)",
       [](TestCall &c) { c.bindings[T::kKComp].shape[1] = 10; }},
      {Operator::kCompress, Layout::kPacked, "k_comp.shape", "12 rows", "must hold the 13 compressed blocks",
       [](TestCall &c) { c.bindings[T::kKComp].shape[0] = c.bindings[T::kVComp].shape[0] = 12; }},
      {Operator::kCompressBwd, Layout::kDense, "d_k_comp.shape", "[2, 10, 2, 24]",
       "must be 11 (compressed blocks of k_cmp)", [](TestCall &c) { c.bindings[T::kDKComp].shape[1] = 10; }},
      {Operator::kCompressBwd, Layout::kPacked, "d_k_comp.shape", "12 rows", "must hold the 13 compressed blocks",
       [](TestCall &c) { c.bindings[T::kDKComp].shape[0] = c.bindings[T::kDVComp].shape[0] = 12; }},
      {Operator::kCompressBwd, Layout::kDense, "d_v_cmp.shape", "[2, 95, 2, 16]", "must be 96 (as k_cmp)",
       [](TestCall &c) { c.bindings[T::kDVCmp].shape[1] = 95; }},
      {Operator::kCompressBwd, Layout::kDense, "d_w_k", "bound", "no tensor of operator compress_bwd",
       [](TestCall &c) { c.set(T::kDWK, TestCall::placeOf(T::kQ), DType::kBf16, {16, 24, 24}); }},
      {Operator::kCompress, Layout::kDense, "w_k", "bound", "no tensor of operator compress",
       [](TestCall &c) { c.set(T::kWK, TestCall::placeOf(T::kWK), DType::kBf16, {16, 24, 24}); }},
      {Operator::kSelect, Layout::kDense, "block_list.shape", "[2, 64, 2, 5]", "must be 4 (sel_count)",
       [](TestCall &c) { c.bindings[T::kBlockList].shape[3] = 5; }},
      {Operator::kSelect, Layout::kDense, "block_list.dtype", "bf16", "must be int32",
       [](TestCall &c) { c.bindings[T::kBlockList].dtype = DType::kBf16; }},
      {Operator::kSelect, Layout::kDense, "block_list.strides", "[512, 8, 4, 0]", "must not share memory",
       [](TestCall &c) { c.bindings[T::kBlockList].strides[3] = 0; }},
      {Operator::kSelect, Layout::kDense, "block_list.strides", "[512, 4, 4, 1]",
       "must not share memory, and with the shape [2, 64, 2, 4] some do",
       [](TestCall &c) { c.bindings[T::kBlockList].strides[1] = 4; }},
      {Operator::kCombine, Layout::kDense, "out.strides", "[6144, 16, 16, 1]", "must not share memory",
       [](TestCall &c) { c.bindings[T::kOut].strides[1] = 16; }},
      {Operator::kSelect, Layout::kDense, "block_list.strides", "36028797018963967", "must fit 63 bits",
       [](TestCall &c) {
         c.bindings[T::kBlockList].strides[0] = (int64_t{1} << 60) - 1; // each axis alone would fit
         c.bindings[T::kBlockList].strides[1] = (int64_t{1} << 55) - 1;
       }},
      {Operator::kSel, Layout::kDense, "block_list.rank", "3", "must be 4",
       [](TestCall &c) { c.bindings[T::kBlockList].rank = 3; }},
      {Operator::kSel, Layout::kDense, "reads.shape", "[2, 64, 3]", "must be 2 (kv_heads)",
       [](TestCall &c) { c.bindings[T::kReads].shape[2] = 3; }},
      {Operator::kCombine, Layout::kDense, "gates.shape", "[2, 64, 6, 2]", "must be 3 (cmp, sel, win)",
       [](TestCall &c) { c.bindings[T::kGates].shape[3] = 2; }},
      {Operator::kCombine, Layout::kDense, "gates.shape", "[2, 64, 6, 3]",
       "must be 2 (gate heads: query_heads, or kv_heads with gate_per_group)",
       [](TestCall &c) { c.spec.gatePerGroup = true; }},
      {Operator::kCombineBwd, Layout::kDense, "d_o_win.accumulate", "1",
       "must be 0, because the gradient of a branch's output replaces what its tensor holds",
       [](TestCall &c) { c.bindings[T::kDOWin].accumulate = true; }},
      {Operator::kCombine, Layout::kDense, "o_sel", "bound", "no tensor of operator combine",
       [](TestCall &c) { c.spec.branches = kBranchCmp | kBranchWin; }},
      {Operator::kCombine, Layout::kPacked, "tokens_q", "80", "max_tokens_q = 70",
       [](TestCall &c) { c.maxima.tokensQ = 70; }},
      {Operator::kNsa, Layout::kDense, "v_sel.shape", "[2, 95, 2, 16]", "must be 96 (as k_cmp)",
       [](TestCall &c) { c.bindings[T::kVSel].shape[1] = 95; }},
      {Operator::kNsa, Layout::kDense, "k_cmp.strides", "2", "must be contiguous",
       [](TestCall &c) { c.bindings[T::kKCmp].strides[3] = 2; }},
      {Operator::kInvert, Layout::kDense, "block_index.shape", "[2, 2, 261]",
       "more than 2^31 - 1 places are needed: 33554433 for offsets and 2147483648 for queries",
       [](TestCall &c) { c.bindings[T::kBlockList].shape[1] = int64_t{1} << 29; }},
      {Operator::kNsa, Layout::kPacked, "cu_seqlens_k[2]", "39", "must not be less",
       [](TestCall &c) { c.offsetsK[2] = 39; }},
      {Operator::kNsa, Layout::kPacked, "seqlen_q of sequence 1", "50", "at most its seqlen_k = 40",
       [](TestCall &c) { c.offsetsK[2] = 80; }},
      {Operator::kCmp, Layout::kDense, "k_offset[1]", "20", "multiple of cmp_stride = 8",
       [](TestCall &c) { c.firstKeys[1] = 20; }},
      {Operator::kCmp, Layout::kPacked, "k_offset[0]", "-1", "multiple of cmp_stride = 8",
       [](TestCall &c) { c.firstKeys[0] = -1; }},
  };
  for (const Row &row : rows) {
    TestCall call(row.op, row.layout);
    ASSERT_TRUE(call.check().isOk()) << operatorName(row.op) << ": " << call.check().toString();
    row.spoil(call);
    const Status status = call.check();
    ASSERT_FALSE(status.isOk()) << operatorName(row.op) << " " << row.field << " " << row.rule;
    EXPECT_EQ(status.error().field, row.field) << status.toString();
    EXPECT_EQ(status.error().value, row.value) << status.toString();
    EXPECT_NE(status.error().rule.find(row.rule), std::string::npos) << status.toString();
  }
}

// Strides may interleave rows that share nothing.
TEST(Call, OutputsMayHaveAnyStridesThatShareNothing) {
  TestCall call(Operator::kSelect, Layout::kDense);
  Tensor &list = call.bindings[T::kBlockList]; // [2, 64, 2, 4]
  for (const std::array<int64_t, kMaxTensorRank> strides :
       {std::array<int64_t, kMaxTensorRank>{8, 16, 4, 1}, {4000, 50, 7, 9}, {512, 8, 4, 1}}) {
    list.strides = strides;
    EXPECT_TRUE(call.check().isOk()) << call.check().toString();
  }
}

TEST(Call, WeightsHaveShapesOfTheirKind) {
  for (const Operator op : {Operator::kCompress, Operator::kCompressBwd})
    for (CmpKind kind : {CmpKind::kLinear, CmpKind::kMlp})
      for (const Operand &operand : operandsOf(op)) {
        TestCall call(op, Layout::kDense);
        call.spec.cmpKind = kind;
        call.bindAll();
        if (!takes(call.spec, operand.name) || tensorRule(operand.name).lead != Lead::kNone)
          continue;
        call.bindings[operand.name].shape[0] += 1;
        const Status status = call.check();
        ASSERT_FALSE(status.isOk()) << tensorName(operand.name);
        EXPECT_EQ(status.error().field, std::string(tensorName(operand.name)) + ".shape");
      }
}

// A weight that the call leaves out has no gradient, and neither has a weight of another kind.
TEST(Call, GradientsOfWeightsAreOfTheWeightsThatAreRead) {
  TestCall call(Operator::kCompressBwd, Layout::kDense);
  call.spec.cmpKind = CmpKind::kLinear;
  call.bindAll();
  for (const T name : {T::kDPeK, T::kDWK, T::kDBK, T::kDWV}) {
    call.drop(name);
    EXPECT_TRUE(call.check().isOk()) << "without " << tensorName(name) << ": " << call.check().toString();
  }
  call.bind(T::kDPeK);
  call.drop(T::kPeK);
  EXPECT_EQ(call.check().error().field, "d_pe_k");
  EXPECT_EQ(call.check().error().rule, "is the gradient of pe_k, which this call does not read");
  call.drop(T::kDPeK);
  EXPECT_TRUE(call.check().isOk()) << call.check().toString();
  call.bind(T::kDW1K);
  EXPECT_EQ(call.check().error().field, "d_w1_k");
  EXPECT_NE(call.check().error().rule.find("no tensor of operator compress_bwd with this spec"), std::string::npos);
}

// Gradients of weights are 0 where there is no token, so the kernels run.
TEST(Call, GradientsOfWeightsAreComputedWithoutTokens) {
  for (const Operator op : {Operator::kCompress, Operator::kCompressBwd}) {
    TestCall test(op, Layout::kDense);
    for (int i = 0; i < kTensorNames; ++i)
      if (const auto name = static_cast<T>(i); test.bindings.find(name) && tensorRule(name).lead != Lead::kNone)
        test.bindings[name].shape[1] = 0;
    Call call;
    const CallRules rules(test.spec, test.maxima);
    const Status status = prepareCall(rules, test.bindings, call);
    ASSERT_TRUE(status.isOk()) << status.toString();
    EXPECT_EQ(call.empty, op == Operator::kCompress);
  }
}

} // namespace
