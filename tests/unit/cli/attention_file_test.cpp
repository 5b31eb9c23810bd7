// From tensors to a spec: names, ranks, lengths, and every disagreement.
#include "tests/harness/scratch.h"
#include "tools/nsa/attention_file.h"

#include <cstring>
#include <map>

namespace nsa::tools {
namespace {

using test::Scratch;
using Tensors = std::map<std::string, HostTensor>;

HostTensor tensor(std::vector<int64_t> shape, DType dtype = DType::kBf16) {
  return HostTensor::make(dtype, std::move(shape));
}

HostTensor lengths(std::vector<int32_t> values) {
  HostTensor result = HostTensor::make(DType::kI32, {static_cast<int64_t>(values.size())});
  std::memcpy(result.bytes.data(), values.data(), result.bytes.size());
  return result;
}

Result<AttentionFile> read(const Tensors &tensors, std::string_view config = "{}", Operator op = Operator::kWindow) {
  const Scratch scratch;
  std::vector<std::pair<std::string, const HostTensor *>> list;
  for (const auto &[name, value] : tensors)
    list.emplace_back(name, &value);
  EXPECT_TRUE(writeSafetensors(OutputFile::create(scratch.file("t")), list).isOk());
  const Result<SafetensorsFile> file = SafetensorsFile::open(scratch.file("t"));
  EXPECT_TRUE(file);
  const Result<ConfigFile> parsed = ConfigFile::read(scratch.write("c.json", config));
  EXPECT_TRUE(parsed) << parsed.status().toString();
  return readAttentionFile(op, *parsed, *file);
}

Tensors rank3() { return {{"q", tensor({20, 8, 64})}, {"k", tensor({30, 2, 64})}, {"v", tensor({30, 2, 48})}}; }

TEST(AttentionFile, RankThreeIsOneDenseSequence) {
  const Result<AttentionFile> file = read(rank3(), R"({"window": 9})");
  ASSERT_TRUE(file) << file.status().toString();
  EXPECT_TRUE(file->withoutBatch);
  const auto &[spec, maxima, q, k, v, cuQ, cuK] = file->inputs;
  EXPECT_EQ(spec.layout, Layout::kDense);
  EXPECT_EQ(spec.queryHeads, 8);
  EXPECT_EQ(spec.kvHeads, 2);
  EXPECT_EQ(spec.qkDim, 64);
  EXPECT_EQ(spec.vDim, 48);
  EXPECT_EQ(spec.window, 9);
  EXPECT_EQ(spec.dtype, DType::kBf16);
  EXPECT_EQ(maxima.batch, 1);
  EXPECT_EQ(maxima.seqlenQ, 20);
  EXPECT_EQ(maxima.seqlenK, 30);
  EXPECT_EQ(q.shape, (std::vector<int64_t>{1, 20, 8, 64}));
  EXPECT_FALSE(cuQ);
}

TEST(AttentionFile, RankFourIsADenseBatch) {
  const Result<AttentionFile> file =
      read({{"q", tensor({3, 20, 8, 64})}, {"k", tensor({3, 30, 2, 64})}, {"v", tensor({3, 30, 2, 48})}});
  ASSERT_TRUE(file) << file.status().toString();
  EXPECT_FALSE(file->withoutBatch);
  EXPECT_EQ(file->inputs.maxima.batch, 3);
  EXPECT_EQ(file->inputs.maxima.tokensQ, 60);
}

TEST(AttentionFile, LengthsMakeItPacked) {
  Tensors tensors = rank3();
  tensors["cu_seqlens_q"] = lengths({0, 5, 5, 20});
  tensors["cu_seqlens_k"] = lengths({0, 12, 13, 30});
  const Result<AttentionFile> file = read(tensors);
  ASSERT_TRUE(file) << file.status().toString();
  EXPECT_EQ(file->inputs.spec.layout, Layout::kPacked);
  EXPECT_EQ(file->inputs.maxima.batch, 3);
  EXPECT_EQ(file->inputs.maxima.seqlenQ, 15);
  EXPECT_EQ(file->inputs.maxima.seqlenK, 17);
  EXPECT_EQ(file->inputs.maxima.tokensQ, 20);
}

TEST(AttentionFile, OneListOfLengthsStandsForBoth) {
  Tensors tensors = {{"q", tensor({30, 8, 64})},
                     {"k", tensor({30, 2, 64})},
                     {"v", tensor({30, 2, 48})},
                     {"cu_seqlens_k", lengths({0, 12, 30})}};
  const Result<AttentionFile> file = read(tensors);
  ASSERT_TRUE(file) << file.status().toString();
  ASSERT_TRUE(file->inputs.cuSeqlensQ);
  EXPECT_EQ(file->inputs.cuSeqlensQ->bytes, file->inputs.cuSeqlensK->bytes);
}

TEST(AttentionFile, TheWindowsOwnTensorsGoFirst) {
  Tensors tensors = rank3();
  tensors["k_win"] = tensor({40, 4, 64});
  tensors["v_win"] = tensor({40, 4, 16});
  tensors["gates"] = tensor({20, 8, 3}); // not looked at
  const Result<AttentionFile> file = read(tensors);
  ASSERT_TRUE(file) << file.status().toString();
  EXPECT_EQ(file->inputs.spec.kvHeads, 4);
  EXPECT_EQ(file->inputs.spec.vDim, 16);
}

TEST(AttentionFile, MalformedLengthsDoNotSpoilTheMaxima) {
  // The runtime reports them with their place; here they only must not give bounds that hide the report.
  Tensors tensors = rank3();
  tensors["cu_seqlens_q"] = lengths({0, 2000000000, 20});
  tensors["cu_seqlens_k"] = lengths({0, -5, 30});
  const Result<AttentionFile> file = read(tensors);
  ASSERT_TRUE(file) << file.status().toString();
  EXPECT_EQ(file->inputs.maxima.seqlenQ, 20);
  EXPECT_EQ(file->inputs.maxima.seqlenK, 30);
}

void expectError(const Tensors &tensors, std::string_view config, const std::string &reason) {
  const Result<AttentionFile> file = read(tensors, config);
  ASSERT_FALSE(file) << "expected: " << reason;
  EXPECT_NE(file.status().toString().find(reason), std::string::npos)
      << file.status().toString() << "\nexpected: " << reason;
}

TEST(AttentionFile, DisagreementsAreNamed) {
  expectError(rank3(), R"({"query_heads": 4})", "query_heads = 4: must agree with the tensors, which say 8");
  expectError(rank3(), R"({"kv_heads": 1})", "kv_heads = 1");
  expectError(rank3(), R"({"qk_dim": 63})", "qk_dim = 63");
  expectError(rank3(), R"({"v_dim": 64})", "v_dim = 64");
  expectError(rank3(), R"({"dtype": "fp32"})", "dtype = fp32");
  expectError(rank3(), R"({"layout": "packed"})", "layout = packed");
}

TEST(AttentionFile, WrongTensorsAreNamed) {
  auto with = [](const char *name, HostTensor value) {
    Tensors tensors = rank3();
    tensors[name] = std::move(value);
    return tensors;
  };
  Tensors withoutQ = rank3();
  withoutQ.erase("q");
  expectError(withoutQ, "{}", "has no tensor \"q\"");
  Tensors withoutV = rank3();
  withoutV.erase("v");
  expectError(withoutV, "{}", "has no tensor \"v\"");
  expectError(with("k", tensor({30, 2, 32})), "{}", "k = [30, 2, 32]: must have the head size of q");
  expectError(with("k", tensor({30, 2, 64}, DType::kF16)), "{}", "must have the dtype of q");
  expectError(with("v", tensor({29, 2, 48})), "{}", "v = [29, 2, 48]: must have the time and heads of k");
  expectError(with("v", tensor({30, 1, 48})), "{}", "v = [30, 1, 48]");
  expectError(with("k", tensor({1, 30, 2, 64})), "{}", "must have the rank of q");
  expectError(with("q", tensor({20, 512})), "{}", "q = [20, 512]");
  expectError(with("q", tensor({20, 8, 64}, DType::kI32)), "{}", "q = I32");
  expectError(with("q", tensor({20, 7, 64})), "{}", "query_heads = 7");
  expectError(with("q", tensor({20, 8, 0})), "{}", "at least one head and one column");
  expectError(with("cu_seqlens_q", tensor({3})), "{}", "cu_seqlens_q = bf16: must be int32");
  expectError(with("cu_seqlens_q", lengths({0})), "{}", "cu_seqlens_q = [1]");
  Tensors unequal = with("cu_seqlens_q", lengths({0, 20}));
  unequal["cu_seqlens_k"] = lengths({0, 10, 30});
  expectError(unequal, "{}", "must have the shape of cu_seqlens_q");
  expectError({{"q", tensor({1, 20, 8, 64})},
               {"k", tensor({1, 30, 2, 64})},
               {"v", tensor({1, 30, 2, 48})},
               {"cu_seqlens_q", lengths({0, 20})}},
              "{}", "beside cu_seqlens");
  expectError({{"q", tensor({2, 20, 8, 64})}, {"k", tensor({1, 30, 2, 64})}, {"v", tensor({1, 30, 2, 48})}}, "{}",
              "must have the batch of q");
}

} // namespace
} // namespace nsa::tools
