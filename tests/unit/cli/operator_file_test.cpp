// From tensors to a spec: names, ranks, lengths, and every disagreement, for every operator.
#include "tests/unit/cli/tensor_files.h"

namespace nsa::tools {
namespace {

Tensors window() { return {{"q", tensor({20, 8, 64})}, {"k", tensor({30, 2, 64})}, {"v", tensor({30, 2, 48})}}; }

// All raw inputs of the whole forward, as the trained model's file has them, and weights of every kind.
Tensors forward() {
  Tensors tensors = {{"q", tensor({20, 8, 64})}, {"gates", tensor({20, 8, 3})}};
  for (const char *branch : {"cmp", "sel", "win"}) {
    tensors[std::string("k_") + branch] = tensor({30, 2, 64});
    tensors[std::string("v_") + branch] = tensor({30, 2, 48});
  }
  tensors["pe_k"] = tensor({32, 64});
  tensors["pe_v"] = tensor({32, 48});
  tensors["w_k"] = tensor({32, 64, 64});
  tensors["w_v"] = tensor({32, 48, 48});
  tensors["b_k"] = tensor({64});
  tensors["w1_k"] = tensor({32 * 64, 10});
  tensors["w1_v"] = tensor({32 * 48, 10});
  tensors["w2_k"] = tensor({10, 64});
  tensors["w2_v"] = tensor({10, 48});
  return tensors;
}

Tensors combined() {
  return {{"o_cmp", tensor({20, 8, 48})},
          {"o_sel", tensor({20, 8, 48})},
          {"o_win", tensor({20, 8, 48})},
          {"gates", tensor({20, 2, 3})}};
}

TEST(OperatorFile, RankWithoutBatchIsOneDenseSequence) {
  const Result<OperatorFile> file = read(Operator::kWindow, window(), R"({"window": 9})");
  ASSERT_TRUE(file) << file.status().toString();
  EXPECT_TRUE(file->withoutBatch);
  const auto &[spec, maxima, extents, tensors] = file->inputs;
  EXPECT_EQ(spec.op, Operator::kWindow);
  EXPECT_EQ(spec.layout, Layout::kDense);
  EXPECT_EQ(spec.queryHeads, 8);
  EXPECT_EQ(spec.kvHeads, 2);
  EXPECT_EQ(spec.qkDim, 64);
  EXPECT_EQ(spec.vDim, 48);
  EXPECT_EQ(spec.window, 9);
  EXPECT_EQ(spec.dtype, DType::kBf16);
  EXPECT_EQ(maxima.batch, 1);
  EXPECT_EQ(maxima.tokensQ, 20);
  EXPECT_EQ(maxima.seqlenQ, 20);
  EXPECT_EQ(maxima.seqlenK, 30);
  EXPECT_EQ(extents.timeQ, 20);
  EXPECT_EQ(extents.timeK, 30);
  EXPECT_EQ(tensors.at(TensorName::kQ).shape, (std::vector<int64_t>{1, 20, 8, 64}));
  EXPECT_FALSE(tensors.contains(TensorName::kCuSeqlensQ));
}

TEST(OperatorFile, OffsetsOfKeysAreReadInBothLayouts) {
  Tensors tensors = with(window(), "k_offset", lengths({-64}));
  Result<OperatorFile> file = read(Operator::kDense, tensors);
  ASSERT_TRUE(file) << file.status().toString();
  EXPECT_TRUE(file->withoutBatch);
  EXPECT_EQ(file->inputs[TensorName::kKOffset].shape, std::vector<int64_t>{1});
  tensors["k_offset"] = lengths({-64, 0, 9});
  tensors["cu_seqlens_q"] = lengths({0, 5, 5, 20});
  tensors["cu_seqlens_k"] = lengths({0, 12, 13, 30});
  file = read(Operator::kDense, tensors);
  ASSERT_TRUE(file) << file.status().toString();
  EXPECT_EQ(file->inputs[TensorName::kKOffset].shape, std::vector<int64_t>{3});
  tensors["k_offset"] = tensor({3});
  EXPECT_EQ(read(Operator::kDense, tensors).status().error().rule, "must be int32");
  tensors["k_offset"] = with({}, "x", lengths({0})).at("x");
  tensors["k_offset"].shape = {1, 1};
  EXPECT_EQ(read(Operator::kDense, tensors).status().error().rule, "must be [batch]");
}

// Where the operator does not read it, neither the tensor nor the configuration makes a key of it.
TEST(OperatorFile, WhatTheOperatorDoesNotReadIsIgnored) {
  const Tensors compressed = {{"k", tensor({50, 2, 16})}, {"v", tensor({50, 2, 16})}};
  for (const char *config : {"{}", R"({"key_offset": true, "page_size": 64})", R"({"key_offset": false})"}) {
    const Result<OperatorFile> file = read(Operator::kCompress, with(compressed, "k_offset", lengths({-64})), config);
    ASSERT_TRUE(file) << file.status().toString();
    EXPECT_FALSE(file->inputs.spec.keyOffset) << config;
    EXPECT_EQ(file->inputs.spec.pageSize, 0) << config;
    EXPECT_FALSE(file->inputs.tensors.contains(TensorName::kKOffset)) << config;
    EXPECT_EQ(file->ignored, std::vector<std::string>{"k_offset"}) << config;
  }
}

// Tables of cosines have positions in the place of time, and no batch.
TEST(OperatorFile, TablesOfAnglesHaveNoBatch) {
  HostTensor table = HostTensor::make(DType::kF32, {20, 32});
  const Result<OperatorFile> file =
      read(Operator::kRotate, {{"x", tensor({3, 20, 8, 64})}, {"cos", table}, {"sin", table}});
  ASSERT_TRUE(file) << file.status().toString();
  EXPECT_EQ(file->inputs.maxima.batch, 3);
  EXPECT_EQ(file->inputs[TensorName::kCos].shape, (std::vector<int64_t>{20, 32}));
}

TEST(OperatorFile, OneMoreDimensionIsADenseBatch) {
  const Result<OperatorFile> file = read(
      Operator::kDense, {{"q", tensor({3, 20, 8, 64})}, {"k", tensor({3, 30, 2, 64})}, {"v", tensor({3, 30, 2, 48})}});
  ASSERT_TRUE(file) << file.status().toString();
  EXPECT_FALSE(file->withoutBatch);
  EXPECT_EQ(file->inputs.maxima.batch, 3);
  EXPECT_EQ(file->inputs.maxima.tokensQ, 60);
}

TEST(OperatorFile, LengthsMakeItPacked) {
  Tensors tensors = window();
  tensors["cu_seqlens_q"] = lengths({0, 5, 5, 20});
  tensors["cu_seqlens_k"] = lengths({0, 12, 13, 30});
  const Result<OperatorFile> file = read(Operator::kWindow, tensors);
  ASSERT_TRUE(file) << file.status().toString();
  EXPECT_EQ(file->inputs.spec.layout, Layout::kPacked);
  EXPECT_FALSE(file->withoutBatch);
  EXPECT_EQ(file->inputs.maxima.batch, 3);
  EXPECT_EQ(file->inputs.maxima.seqlenQ, 15);
  EXPECT_EQ(file->inputs.maxima.seqlenK, 17);
  EXPECT_EQ(file->inputs.maxima.tokensQ, 20);
}

TEST(OperatorFile, OneListOfLengthsStandsForBoth) {
  for (const char *name : {"cu_seqlens_q", "cu_seqlens_k"}) {
    const Result<OperatorFile> file = read(Operator::kWindow, {{"q", tensor({30, 8, 64})},
                                                               {"k", tensor({30, 2, 64})},
                                                               {"v", tensor({30, 2, 48})},
                                                               {name, lengths({0, 12, 30})}});
    ASSERT_TRUE(file) << file.status().toString();
    EXPECT_EQ(file->inputs[TensorName::kCuSeqlensQ].bytes, file->inputs[TensorName::kCuSeqlensK].bytes);
    EXPECT_EQ(file->inputs.maxima.seqlenK, 18);
  }
}

TEST(OperatorFile, ABranchsOwnTensorsGoFirst) {
  Tensors tensors = window();
  tensors["k_win"] = tensor({40, 4, 64});
  tensors["v_win"] = tensor({40, 4, 16});
  tensors["gates"] = tensor({20, 8, 3}); // not looked at
  const Result<OperatorFile> file = read(Operator::kWindow, tensors);
  ASSERT_TRUE(file) << file.status().toString();
  EXPECT_EQ(file->inputs.spec.kvHeads, 4);
  EXPECT_EQ(file->inputs.spec.vDim, 16);
  EXPECT_FALSE(file->inputs.tensors.contains(TensorName::kK));
  EXPECT_FALSE(file->inputs.tensors.contains(TensorName::kGates));
}

TEST(OperatorFile, OnePairServesAllBranches) {
  const Result<OperatorFile> file = read(Operator::kNsa, with(window(), "gates", tensor({20, 8, 3})));
  ASSERT_TRUE(file) << file.status().toString();
  EXPECT_EQ(file->inputs.tensors.size(), 4u);
  EXPECT_TRUE(file->inputs.tensors.contains(TensorName::kK));
}

TEST(OperatorFile, MalformedLengthsDoNotSpoilTheMaxima) {
  // The runtime reports them with their place; here they only must not give bounds that hide the report.
  Tensors tensors = window();
  tensors["cu_seqlens_q"] = lengths({0, 2000000000, 20});
  tensors["cu_seqlens_k"] = lengths({0, -5, 30});
  const Result<OperatorFile> file = read(Operator::kWindow, tensors);
  ASSERT_TRUE(file) << file.status().toString();
  EXPECT_EQ(file->inputs.maxima.seqlenQ, 20);
  EXPECT_EQ(file->inputs.maxima.seqlenK, 30);
}

TEST(OperatorFile, TheWholeForwardReadsWhatItsCompressionNeeds) {
  const auto count = [](const char *config) {
    const Result<OperatorFile> file = read(Operator::kNsa, forward(), config);
    EXPECT_TRUE(file) << file.status().toString();
    return file ? file->inputs.tensors.size() : 0;
  };
  EXPECT_EQ(count("{}"), 8u);
  EXPECT_EQ(count(R"({"cmp_kind": "linear"})"), 8u + 5);
  EXPECT_EQ(count(R"({"cmp_kind": "mlp"})"), 8u + 6);
  EXPECT_EQ(count(R"({"branches": ["win"]})"), 4u);
  EXPECT_EQ(count(R"({"branches": ["cmp", "win"]})"), 6u);
  const Result<OperatorFile> mlp = read(Operator::kNsa, forward(), R"({"cmp_kind": "mlp", "sel_count": 4})");
  ASSERT_TRUE(mlp);
  EXPECT_EQ(mlp->inputs.spec.mlpHidden, 10);
  EXPECT_EQ(mlp->inputs.spec.selCount, 4);
  EXPECT_EQ(mlp->inputs.spec.cmpBlock, 32);
  EXPECT_FALSE(mlp->inputs.spec.gatePerGroup);
  EXPECT_EQ(mlp->inputs.extents.blocks, 0);
}

TEST(OperatorFile, WeightsSayHowLongACompressedBlockIs) {
  Tensors tensors = {{"k", tensor({50, 2, 16})},
                     {"v", tensor({50, 2, 16})},
                     {"w_k", tensor({8, 16, 16})},
                     {"w_v", tensor({8, 16, 16})}};
  const Result<OperatorFile> file = read(Operator::kCompress, tensors, R"({"cmp_kind": "linear", "cmp_stride": 4})");
  ASSERT_TRUE(file) << file.status().toString();
  EXPECT_EQ(file->inputs.spec.cmpBlock, 8);
  EXPECT_EQ(file->inputs.extents.blocks, 11);
  EXPECT_EQ(file->inputs.extents.timeK, 50);
}

TEST(OperatorFile, CompressedRowsComeWithQueriesOnly) {
  Tensors tensors = {{"q", tensor({100, 8, 64})}, {"k_comp", tensor({5, 2, 64})}, {"v_comp", tensor({5, 2, 48})}};
  for (const Operator op : {Operator::kCmp, Operator::kSelect}) {
    const Result<OperatorFile> file = read(op, tensors);
    ASSERT_TRUE(file) << file.status().toString();
    EXPECT_EQ(file->inputs.maxima.seqlenK, 100) << "as many tokens as queries";
    EXPECT_EQ(file->inputs.extents.blocks, 5);
    EXPECT_EQ(file->inputs.tensors.contains(TensorName::kVComp), op == Operator::kCmp);
  }
  // Packed, with a prefix of its own.
  tensors["cu_seqlens_q"] = lengths({0, 40, 100});
  tensors["cu_seqlens_k"] = lengths({0, 80, 200});
  const Result<OperatorFile> file = read(Operator::kCmp, tensors);
  ASSERT_TRUE(file) << file.status().toString();
  EXPECT_EQ(file->inputs.maxima.seqlenK, 120);
  EXPECT_EQ(file->inputs.maxima.seqlenQ, 60);
  EXPECT_EQ(file->inputs.maxima.tokensQ, 100);
}

TEST(OperatorFile, PackedCompressionCountsItsBlocks) {
  const Result<OperatorFile> file =
      read(Operator::kCompress,
           {{"k", tensor({100, 2, 16})}, {"v", tensor({100, 2, 16})}, {"cu_seqlens_k", lengths({0, 31, 95, 100})}});
  ASSERT_TRUE(file) << file.status().toString();
  EXPECT_EQ(file->inputs.extents.blocks, 3); // of 31, 64 and 5 tokens: none, three, none
  EXPECT_EQ(file->inputs.maxima.seqlenK, 64);
}

TEST(OperatorFile, AListSaysHowManyBlocksAreSelected) {
  Tensors tensors = with(window(), "block_list", tensor({20, 2, 5}, DType::kI32));
  const Result<OperatorFile> file = read(Operator::kSel, tensors);
  ASSERT_TRUE(file) << file.status().toString();
  EXPECT_EQ(file->inputs.spec.selCount, 5);
}

TEST(OperatorFile, GatesSayWhoseTheyAre) {
  const Result<OperatorFile> perGroup = read(Operator::kCombine, combined());
  ASSERT_TRUE(perGroup) << perGroup.status().toString();
  EXPECT_TRUE(perGroup->inputs.spec.gatePerGroup);
  EXPECT_EQ(perGroup->inputs.spec.kvHeads, 2);
  EXPECT_EQ(perGroup->inputs.spec.queryHeads, 8);
  EXPECT_EQ(perGroup->inputs.spec.vDim, 48);
  const Tensors perHead = with(combined(), "gates", tensor({20, 8, 3}));
  const Result<OperatorFile> heads = read(Operator::kCombine, perHead, R"({"kv_heads": 2})");
  ASSERT_TRUE(heads) << heads.status().toString();
  EXPECT_FALSE(heads->inputs.spec.gatePerGroup);
  // As many groups as heads: either name is right.
  EXPECT_TRUE(read(Operator::kCombine, perHead, R"({"kv_heads": 8, "gate_per_group": true})"));
}

TEST(OperatorFile, ACombinationIsPackedWhereTheConfigurationOrLengthsSayIt) {
  const Result<OperatorFile> dense = read(Operator::kCombine, combined());
  ASSERT_TRUE(dense);
  EXPECT_TRUE(dense->withoutBatch);
  const Result<OperatorFile> packed = read(Operator::kCombine, combined(), R"({"layout": "packed"})");
  ASSERT_TRUE(packed) << packed.status().toString();
  EXPECT_EQ(packed->inputs.spec.layout, Layout::kPacked);
  EXPECT_EQ(packed->inputs.maxima.tokensQ, 20);
  EXPECT_FALSE(packed->withoutBatch);
  const Result<OperatorFile> withLengths =
      read(Operator::kCombine, with(combined(), "cu_seqlens_q", lengths({0, 12, 20})));
  ASSERT_TRUE(withLengths) << withLengths.status().toString();
  EXPECT_EQ(withLengths->inputs.spec.layout, Layout::kPacked);
  EXPECT_TRUE(withLengths->ignored.empty());
}

struct Wrong {
  std::string name;
  Operator op;
  Tensors tensors;
  std::string config, reason;
};

class WrongFile : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongFile, IsAClearError) {
  const Wrong &wrong = GetParam();
  const Result<OperatorFile> file = read(wrong.op, wrong.tensors, wrong.config);
  ASSERT_FALSE(file) << "expected: " << wrong.reason;
  EXPECT_EQ(file.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(file.status().toString().find(wrong.reason), std::string::npos)
      << file.status().toString() << "\nexpected: " << wrong.reason;
}

std::vector<Wrong> wrongFiles() {
  std::vector<Wrong> table;
  auto add = [&](std::string name, Operator op, Tensors tensors, std::string config, std::string reason) {
    table.push_back({std::move(name), op, std::move(tensors), std::move(config), std::move(reason)});
  };
  constexpr Operator kWin = Operator::kWindow, kNsa = Operator::kNsa;
  // The configuration disagrees.
  add("QueryHeads", kWin, window(), R"({"query_heads": 4})",
      "query_heads = 4: must agree with the tensors, which say 8");
  add("KvHeads", kWin, window(), R"({"kv_heads": 1})", "kv_heads = 1: must agree");
  add("QkDim", kWin, window(), R"({"qk_dim": 63})", "qk_dim = 63: must agree");
  add("VDim", kWin, window(), R"({"v_dim": 64})", "v_dim = 64: must agree");
  add("Dtype", kWin, window(), R"({"dtype": "fp32"})", "dtype = fp32: must agree with the tensors, which say bf16");
  add("LayoutPacked", kWin, window(), R"({"layout": "packed"})", "layout = packed: must agree");
  add("LayoutDense", kWin, with(window(), "cu_seqlens_k", lengths({0, 30})), R"({"layout": "dense"})",
      "layout = dense: must agree");
  add("SelCount", Operator::kSel, with(window(), "block_list", tensor({20, 2, 5}, DType::kI32)), R"({"sel_count": 4})",
      "sel_count = 4: must agree with the tensors, which say 5");
  add("MlpHidden", kNsa, forward(), R"({"cmp_kind": "mlp", "mlp_hidden": 9})", "mlp_hidden = 9: must agree");
  add("CmpBlock", kNsa, forward(), R"({"cmp_kind": "linear", "cmp_block": 16})", "cmp_block = 16: must agree");
  add("GatePerGroup", kNsa, forward(), R"({"gate_per_group": true})",
      "gate_per_group = true: must agree with the tensors, which say false");
  add("KeyOffset", kWin, with(window(), "k_offset", lengths({-64})), R"({"key_offset": false})",
      "key_offset = false: must agree with the tensors, which say true");
  add("GatePerHead", Operator::kCombine, combined(), R"({"gate_per_group": false})",
      "gate_per_group = false: must agree with the tensors, which say true");
  add("KvHeadsOfGates", Operator::kCombine, combined(), R"({"kv_heads": 4})", "kv_heads = 4: must agree");
  add("KvHeadsUnknown", Operator::kCombine, with(combined(), "gates", tensor({20, 8, 3})), "{}", "lacks kv_heads");
  // Tensors that are not there.
  add("NoQ", kWin, without(window(), "q"), "{}", "has no tensor \"q\"");
  add("NoV", kWin, without(window(), "v"), "{}", "has no tensor \"v\"");
  add("NoGates", kNsa, without(forward(), "gates"), "{}", "has no tensor \"gates\"");
  add("NoBranchKey", kNsa, without(forward(), "k_sel"), "{}", "has no tensor \"k\"");
  add("NoWeights", kNsa, without(forward(), "w_v"), R"({"cmp_kind": "linear"})", "has no tensor \"w_v\"");
  add("NoList", Operator::kSel, window(), "{}", "has no tensor \"block_list\"");
  add("NoPart", Operator::kCombine, without(combined(), "o_sel"), "{}", "has no tensor \"o_sel\"");
  // Types.
  add("OtherDtype", kWin, with(window(), "k", tensor({30, 2, 64}, DType::kF16)), "{}",
      "k = fp16: must have the dtype of q, bf16");
  add("Integers", kWin, with(window(), "q", tensor({20, 8, 64}, DType::kI32)), "{}",
      "q = int32: must be bf16, fp16 or fp32");
  add("ListOfFloats", Operator::kSel, with(window(), "block_list", tensor({20, 2, 5})), "{}",
      "block_list = bf16: must be int32");
  add("LseType", Operator::kSelect,
      {{"q", tensor({40, 8, 64})}, {"k_comp", tensor({1, 2, 64})}, {"lse", tensor({40, 8})}}, "{}",
      "lse = bf16: must be fp32");
  // Ranks, batch, time.
  const auto listed = [&](std::vector<int64_t> index) {
    return with(with(with(with(with(window(), "block_list", tensor({20, 2, 5}, DType::kI32)), "block_index",
                               tensor(std::move(index), DType::kI32)),
                          "out", tensor({20, 8, 64})),
                     "lse", tensor({20, 8}, DType::kF32)),
                "d_out", tensor({20, 8, 64}));
  };
  add("RankOfIndex", Operator::kSelBwd, listed({200}), "{}",
      "block_index = [200]: must be [kv_heads, places] or [batch, kv_heads, places]");
  add("NoSavedLse", Operator::kSelBwd, without(listed({2, 200}), "lse"), "{}",
      "lse = absent: must be in the file (hint: the operator sel writes it with --all-outputs)");
  add("HeadsOfIndex", Operator::kSelBwd, listed({3, 200}), "{}",
      "block_index = [3, 200]: dimension 0 must be 2 (kv_heads, as in k)");
  add("Rank", kWin, with(window(), "q", tensor({20, 512})), "{}",
      "q = [20, 512]: must be [time, query_heads, qk_dim] or [batch, time, query_heads, qk_dim]");
  add("RankOfRows", Operator::kCmp,
      {{"q", tensor({40, 8, 64})}, {"k_comp", tensor({1, 64})}, {"v_comp", tensor({1, 2, 64})}}, "{}",
      "k_comp = [1, 64]: must be [blocks, kv_heads, qk_dim]");
  add("RankOfWeights", kNsa, with(forward(), "b_k", tensor({1, 64})), R"({"cmp_kind": "linear"})",
      "b_k = [1, 64]: must be [qk_dim]");
  add("RankBesideLengths", kWin,
      {{"q", tensor({1, 20, 8, 64})},
       {"k", tensor({1, 30, 2, 64})},
       {"v", tensor({1, 30, 2, 48})},
       {"cu_seqlens_q", lengths({0, 20})}},
      "{}", "must be [total, query_heads, qk_dim] beside cu_seqlens");
  add("BatchOnOneSide", kWin, with(window(), "k", tensor({1, 30, 2, 64})), "{}",
      "k = [1, 30, 2, 64]: must have no batch, as q has none");
  add("BatchOnTheOther", kWin, with(window(), "q", tensor({1, 20, 8, 64})), "{}",
      "k = [30, 2, 64]: must have a batch in front, as q has");
  add("OtherBatch", kWin, {{"q", tensor({2, 20, 8, 64})}, {"k", tensor({1, 30, 2, 64})}, {"v", tensor({1, 30, 2, 48})}},
      "{}", "k = [1, 30, 2, 64]: must have the batch of q, 2");
  add("OtherTime", kWin, with(window(), "v", tensor({29, 2, 48})), "{}",
      "v = [29, 2, 48]: must have the time of k, 30");
  add("OtherTimeOfGates", kNsa, with(forward(), "gates", tensor({19, 8, 3})), "{}", "must have the time of q, 20");
  // Extents.
  add("HeadSize", kWin, with(window(), "k", tensor({30, 2, 32})), "{}",
      "k = [30, 2, 32]: dimension 2 must be 64 (qk_dim, as in q)");
  add("Heads", kWin, with(window(), "v", tensor({30, 1, 48})), "{}",
      "v = [30, 1, 48]: dimension 1 must be 2 (kv_heads, as in k)");
  add("Branches", kNsa, with(forward(), "gates", tensor({20, 8, 2})), "{}", "dimension 2 must be 3");
  add("GateHeads", kNsa, with(forward(), "gates", tensor({20, 4, 3})), "{}",
      "gates = [20, 4, 3]: dimension 1 must be query_heads = 8 or kv_heads = 2");
  add("FlatWeights", kNsa, with(forward(), "w1_v", tensor({32 * 47, 10})), R"({"cmp_kind": "mlp"})",
      "dimension 0 must be 1536 (cmp_block * v_dim)");
  add("Hidden", kNsa, with(forward(), "w2_k", tensor({11, 64})), R"({"cmp_kind": "mlp"})",
      "w2_k = [11, 64]: dimension 0 must be 10 (mlp_hidden, as in w1_k)");
  add("Square", kNsa, with(forward(), "w_k", tensor({32, 64, 63})), R"({"cmp_kind": "linear"})",
      "w_k = [32, 64, 63]: dimension 2 must be 64 (qk_dim, as in q)");
  add("SpecRules", kWin, with(window(), "q", tensor({20, 7, 64})), "{}", "query_heads = 7");
  add("NoColumns", kWin, {{"q", tensor({20, 8, 0})}, {"k", tensor({30, 2, 0})}, {"v", tensor({30, 2, 48})}}, "{}",
      "qk_dim = 0");
  add("Enormous", kWin, with(window(), "q", tensor({int64_t{1} << 31, 0, 64})), "{}",
      "q = [2147483648, 0, 64]: must have extents below 2^31");
  // Lengths.
  add("LengthsType", kWin, with(window(), "cu_seqlens_q", tensor({3})), "{}", "cu_seqlens_q = bf16: must be int32");
  add("LengthsShape", kWin, with(window(), "cu_seqlens_q", lengths({0})), "{}",
      "cu_seqlens_q = [1]: must be of shape [batch + 1], batch >= 1");
  add("UnequalLengths", kWin,
      with(with(window(), "cu_seqlens_q", lengths({0, 20})), "cu_seqlens_k", lengths({0, 10, 30})), "{}",
      "must have the shape of cu_seqlens_q");
  return table;
}

INSTANTIATE_TEST_SUITE_P(Files, WrongFile, ::testing::ValuesIn(wrongFiles()),
                         [](const auto &info) { return info.param.name; });

} // namespace
} // namespace nsa::tools
