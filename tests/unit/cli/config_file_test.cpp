// The configuration file: every key, every wrong value, and what is needed where no tensors stand in.
#include "tests/harness/scratch.h"
#include "tools/nsa/files/config_text.h"

#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace nsa::tools {
namespace {

using test::Scratch;

Result<ConfigFile> read(std::string_view text) {
  const Scratch scratch;
  return readConfig(scratch.write("config.json", text));
}

TEST(ConfigFile, TakesEveryKey) {
  const Result<ConfigFile> config = read(R"({
    "branches": ["win", "cmp"], "cmp_block": 24, "cmp_kind": "mlp", "cmp_stride": 8, "dtype": "fp16", "gate": "softmax",
    "gate_per_group": true, "init_blocks": 0, "kv_heads": 2, "layout": "packed", "local_blocks": 3,
    "mlp_activation": "silu", "mlp_hidden": 77, "qk_dim": 192, "query_heads": 8, "scale": 0.5, "sel_block": 48,
    "sel_count": 5, "v_dim": 128, "window": 7})");
  ASSERT_TRUE(config) << config.status().toString();
  const Result<Spec> spec = specOf(Operator::kNsa, *config);
  ASSERT_TRUE(spec) << spec.status().toString();
  EXPECT_EQ(spec->op, Operator::kNsa);
  EXPECT_EQ(spec->branches, kBranchCmp | kBranchWin);
  EXPECT_EQ(spec->cmpBlock, 24);
  EXPECT_EQ(spec->cmpKind, CmpKind::kMlp);
  EXPECT_EQ(spec->cmpStride, 8);
  EXPECT_EQ(spec->dtype, DType::kF16);
  EXPECT_EQ(spec->gate, Gate::kSoftmax);
  EXPECT_TRUE(spec->gatePerGroup);
  EXPECT_EQ(spec->initBlocks, 0);
  EXPECT_EQ(spec->kvHeads, 2);
  EXPECT_EQ(spec->layout, Layout::kPacked);
  EXPECT_EQ(spec->localBlocks, 3);
  EXPECT_EQ(spec->mlpActivation, Activation::kSilu);
  EXPECT_EQ(spec->mlpHidden, 77);
  EXPECT_EQ(spec->qkDim, 192);
  EXPECT_EQ(spec->queryHeads, 8);
  EXPECT_EQ(spec->scale, 0.5f);
  EXPECT_EQ(spec->selBlock, 48);
  EXPECT_EQ(spec->selCount, 5);
  EXPECT_EQ(spec->vDim, 128);
  EXPECT_EQ(spec->window, 7);
  EXPECT_EQ(config->given.size(), 20u);
}

TEST(ConfigFile, HasTheContractsDefaults) {
  const Result<ConfigFile> config = read(R"({"query_heads": 4, "kv_heads": 4, "qk_dim": 64})");
  ASSERT_TRUE(config);
  EXPECT_TRUE(config->has("qk_dim"));
  EXPECT_FALSE(config->has("window"));
  const Result<Spec> spec = specOf(Operator::kNsa, *config);
  ASSERT_TRUE(spec) << spec.status().toString();
  EXPECT_EQ(spec->vDim, 64);
  EXPECT_EQ(spec->dtype, DType::kBf16);
  EXPECT_EQ(spec->layout, Layout::kDense);
  EXPECT_EQ(spec->window, 512);
  EXPECT_EQ(spec->scale, 0.0f);
  EXPECT_EQ(spec->cmpBlock, 32);
  EXPECT_EQ(spec->cmpStride, 16);
  EXPECT_EQ(spec->cmpKind, CmpKind::kMean);
  EXPECT_EQ(spec->selBlock, 64);
  EXPECT_EQ(spec->selCount, 16);
  EXPECT_EQ(spec->initBlocks, 1);
  EXPECT_EQ(spec->localBlocks, 2);
  EXPECT_EQ(spec->gate, Gate::kValue);
  EXPECT_FALSE(spec->gatePerGroup);
  EXPECT_EQ(spec->branches, kAllBranches);
}

TEST(ConfigFile, AnUnknownKeyIsNamedAndTheKnownOnesListed) {
  const std::string text = read(R"({"windw": 5})").status().toString();
  EXPECT_NE(text.find("unknown key \"windw\""), std::string::npos) << text;
  EXPECT_NE(
      text.find(
          "batch_invariant, branches, cmp_block, cmp_kind, cmp_stride, dtype, gate, gate_per_group, init_blocks, "
          "key_offset, kv_heads, layout, local_blocks, make_index, mlp_activation, mlp_hidden, page_size, qk_dim, "
          "query_heads, rotary_base, rotary_dims, rotary_style, scale, sel_block, sel_count, v_dim, window"),
      std::string::npos)
      << text;
}

struct Wrong {
  const char *name, *text, *reason;
};
class WrongConfig : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongConfig, IsAClearError) {
  const Result<ConfigFile> config = read(GetParam().text);
  ASSERT_FALSE(config);
  EXPECT_EQ(config.status().code(), ErrorCode::kInvalidArgument);
  const std::string text = config.status().toString();
  EXPECT_NE(text.find(GetParam().reason), std::string::npos) << text;
}

INSTANTIATE_TEST_SUITE_P(
    Values, WrongConfig,
    ::testing::Values(Wrong{"NotJson", "window: 3", "not valid JSON"}, Wrong{"Array", "[1]", "must be a JSON object"},
                      Wrong{"Empty", "", "not valid JSON"}, Wrong{"Comma", R"({"window": 3,})", "not valid JSON"},
                      Wrong{"Repeated", R"({"window": 3, "window": 4})", "stands there twice"},
                      Wrong{"Zero", R"({"window": 0})", "window = 0"},
                      Wrong{"Negative", R"({"kv_heads": -2})", "kv_heads = -2"},
                      Wrong{"Fraction", R"({"qk_dim": 64.0})", "qk_dim = 64.0"},
                      Wrong{"TooLarge", R"({"v_dim": 2147483648})", "v_dim = 2147483648"},
                      Wrong{"Enormous", R"({"v_dim": 18446744073709551615})", "v_dim"},
                      Wrong{"Text", R"({"query_heads": "8"})", "query_heads = \"8\""},
                      Wrong{"Dtype", R"({"dtype": "float"})", "must be one of bf16, fp16, fp32"},
                      Wrong{"DtypeNumber", R"({"dtype": 16})", "must be one of bf16, fp16, fp32"},
                      Wrong{"Layout", R"({"layout": "ragged"})", "must be one of dense, packed"},
                      Wrong{"CmpKind", R"({"cmp_kind": "conv"})", "must be one of mean, linear, mlp"},
                      Wrong{"Activation", R"({"mlp_activation": "tanh"})", "must be one of relu, gelu, silu"},
                      Wrong{"Gate", R"({"gate": true})", "must be one of value, sigmoid, softmax"},
                      Wrong{"InitBlocks", R"({"init_blocks": -1})", "init_blocks = -1: must be an integer from 0"},
                      Wrong{"LocalBlocks", R"({"local_blocks": 0})", "local_blocks = 0: must be an integer from 1"},
                      Wrong{"GatePerGroup", R"({"gate_per_group": 1})", "gate_per_group = 1: must be true or false"},
                      Wrong{"BranchesText", R"({"branches": "cmp"})", "branches = \"cmp\": must be a list"},
                      Wrong{"BranchesEmpty", R"({"branches": []})", "branches = []: must be a list"},
                      Wrong{"BranchUnknown", R"({"branches": ["cmp", "swa"]})",
                            "must be a list of some of \"cmp\", \"sel\", \"win\""},
                      Wrong{"BranchTwice", R"({"branches": ["win", "win"]})", "branches = [\"win\",\"win\"]"},
                      Wrong{"BranchNumber", R"({"branches": [1]})", "branches = [1]"},
                      Wrong{"ScaleText", R"({"scale": "big"})", "scale"},
                      Wrong{"ScaleNegative", R"({"scale": -1})", "scale = -1"},
                      Wrong{"ScaleInfinite", R"({"scale": 1e300})", "scale"}),
    [](const auto &info) { return info.param.name; });

TEST(ConfigFile, WithoutTensorsWhatTheOperatorReadsMustBeThere) {
  const struct {
    Operator op;
    const char *text, *missing;
  } rows[] = {
      {Operator::kDense, R"({"kv_heads": 1, "qk_dim": 8})", "query_heads"},
      {Operator::kDense, R"({"query_heads": 1, "qk_dim": 8})", "kv_heads"},
      {Operator::kDense, R"({"query_heads": 1, "kv_heads": 1})", "qk_dim"},
      {Operator::kCompress, R"({"qk_dim": 8})", "kv_heads"},
      {Operator::kCompress, R"({"kv_heads": 1, "qk_dim": 8, "cmp_kind": "mlp"})", "mlp_hidden"},
      {Operator::kCombine, R"({"query_heads": 1, "kv_heads": 1})", "v_dim"},
  };
  for (const auto &row : rows) {
    const Result<ConfigFile> config = read(row.text);
    ASSERT_TRUE(config);
    const Result<Spec> spec = specOf(row.op, *config);
    ASSERT_FALSE(spec) << row.text;
    EXPECT_NE(spec.status().toString().find(std::string("lacks ") + row.missing), std::string::npos)
        << spec.status().toString();
  }
  // What the operator does not read may be left out.
  const Result<ConfigFile> config = read(R"({"kv_heads": 1, "qk_dim": 8, "cmp_kind": "mlp"})");
  ASSERT_TRUE(config);
  EXPECT_FALSE(specOf(Operator::kNsa, *config));
  const Result<ConfigFile> heads = read(R"({"query_heads": 1, "kv_heads": 1, "v_dim": 8})");
  ASSERT_TRUE(heads);
  EXPECT_TRUE(specOf(Operator::kCombine, *heads));
}

TEST(ConfigFile, RulesOfTheSpecHold) {
  const Result<ConfigFile> config = read(R"({"query_heads": 5, "kv_heads": 2, "qk_dim": 8})");
  ASSERT_TRUE(config);
  EXPECT_NE(specOf(Operator::kDense, *config).status().toString().find("query_heads = 5"), std::string::npos);
  const Result<ConfigFile> blocks = read(R"({"query_heads": 2, "kv_heads": 2, "qk_dim": 8, "sel_count": 2})");
  ASSERT_TRUE(blocks);
  EXPECT_NE(specOf(Operator::kSelect, *blocks).status().toString().find("sel_count = 2"), std::string::npos);
  EXPECT_TRUE(specOf(Operator::kDense, *blocks)) << "which does not read it";
}

// Text on standard input while this lives.
class StandardInput {
public:
  explicit StandardInput(std::string_view text) : before(dup(STDIN_FILENO)) {
    const int file = open(scratch.write("stdin", text).c_str(), O_RDONLY | O_CLOEXEC);
    dup2(file, STDIN_FILENO);
    close(file);
  }
  ~StandardInput() {
    dup2(before, STDIN_FILENO);
    close(before);
  }
  StandardInput(const StandardInput &) = delete;

private:
  Scratch scratch;
  const int before;
};

TEST(ConfigFile, MayStandOnTheCommandLineOrComeFromStandardInput) {
  constexpr const char *kText = R"({"query_heads": 4, "kv_heads": 2, "qk_dim": 64, "window": 7})";
  const StandardInput input(kText);
  for (const std::string &word : {std::string(kText), " \n\t" + std::string(kText), std::string("-")}) {
    const Result<ConfigFile> config = readConfig(word);
    ASSERT_TRUE(config) << config.status().toString();
    EXPECT_EQ(config->path, word == "-" ? "standard input" : "--config");
    const Result<Spec> spec = specOf(Operator::kWindow, *config);
    ASSERT_TRUE(spec) << spec.status().toString();
    EXPECT_EQ(spec->window, 7);
  }
  EXPECT_NE(readConfig("-").status().toString().find("standard input is not valid JSON"), std::string::npos)
      << "it was read to its end";
}

TEST(ConfigFile, AnErrorNamesTheTextAndTheField) {
  const auto errorOf = [](const std::string &text, const std::string &name) {
    const StandardInput input(text);
    const Result<ConfigFile> config = readConfig(name == "standard input" ? "-" : text);
    const Status status = config ? specOf(Operator::kWindow, *config).status() : config.status();
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
    return status.toString();
  };
  for (const std::string name : {"--config", "standard input"})
    for (const auto &[text, part] : {
             std::pair(R"({"window": 0})", ": window = 0: must be an integer from 1"),
             std::pair(R"({"window": 3,})", " is not valid JSON"),
             std::pair(R"({"windw": 3})", ": unknown key \"windw\""),
             std::pair(R"({"query_heads": 1, "kv_heads": 1})", " lacks qk_dim"),
             std::pair(R"({"query_heads": 3, "kv_heads": 2, "qk_dim": 8})",
                       ": query_heads = 3: must be a multiple of kv_heads"),
         })
      EXPECT_NE(errorOf(text, name).find("invalid argument: " + name + part), std::string::npos) << errorOf(text, name);
  const Scratch scratch;
  const std::string path = scratch.write("c.json", R"({"window": 0})");
  EXPECT_NE(readConfig(path).status().toString().find(path + ": window = 0"), std::string::npos);
  EXPECT_EQ(readConfig(path).status().error().field, path + ": window");

  const StandardInput large(std::string((1 << 20) + 1, ' '));
  EXPECT_NE(readConfig("-").status().toString().find("standard input: has more than 1048576 bytes"), std::string::npos);
  const StandardInput folder("");
  const int directory = open(scratch.path().c_str(), O_RDONLY | O_CLOEXEC);
  dup2(directory, STDIN_FILENO);
  close(directory);
  EXPECT_NE(readConfig("-").status().toString().find("standard input: Is a directory"), std::string::npos);
}

TEST(ConfigFile, AMissingFileIsAnError) {
  EXPECT_EQ(readConfig("/nonexistent/config.json").status().code(), ErrorCode::kIoError);
}

} // namespace
} // namespace nsa::tools
