// The configuration file: every key, every wrong value, and what is needed where no tensors stand in.
#include "tests/harness/scratch.h"
#include "tools/nsa/config_file.h"

namespace nsa::tools {
namespace {

using test::Scratch;

Result<ConfigFile> read(std::string_view text) {
  const Scratch scratch;
  return ConfigFile::read(scratch.write("config.json", text));
}

TEST(ConfigFile, TakesEveryKey) {
  const Result<ConfigFile> config = read(
      R"({"query_heads": 8, "kv_heads": 2, "qk_dim": 192, "v_dim": 128, "dtype": "fp16", "layout": "packed", "window": 7, "scale": 0.5})");
  ASSERT_TRUE(config) << config.status().toString();
  const Result<Spec> spec = specOf(Operator::kWindow, *config);
  ASSERT_TRUE(spec) << spec.status().toString();
  EXPECT_EQ(spec->queryHeads, 8);
  EXPECT_EQ(spec->kvHeads, 2);
  EXPECT_EQ(spec->qkDim, 192);
  EXPECT_EQ(spec->vDim, 128);
  EXPECT_EQ(spec->dtype, DType::kF16);
  EXPECT_EQ(spec->layout, Layout::kPacked);
  EXPECT_EQ(spec->window, 7);
  EXPECT_EQ(spec->scale, 0.5f);
}

TEST(ConfigFile, HasTheContractsDefaults) {
  const Result<ConfigFile> config = read(R"({"query_heads": 4, "kv_heads": 4, "qk_dim": 64})");
  ASSERT_TRUE(config);
  const Result<Spec> spec = specOf(Operator::kWindow, *config);
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->vDim, 64);
  EXPECT_EQ(spec->dtype, DType::kBf16);
  EXPECT_EQ(spec->layout, Layout::kDense);
  EXPECT_EQ(spec->window, 512);
  EXPECT_EQ(spec->scale, 0.0f);
}

TEST(ConfigFile, AnUnknownKeyIsNamedAndTheKnownOnesListed) {
  const std::string text = read(R"({"windw": 5})").status().toString();
  EXPECT_NE(text.find("unknown key \"windw\""), std::string::npos) << text;
  EXPECT_NE(text.find("dtype, kv_heads, layout, qk_dim, query_heads, scale, v_dim, window"), std::string::npos) << text;
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

INSTANTIATE_TEST_SUITE_P(Values, WrongConfig,
                         ::testing::Values(Wrong{"NotJson", "window: 3", "not valid JSON"},
                                           Wrong{"Array", "[1]", "must be a JSON object"},
                                           Wrong{"Empty", "", "not valid JSON"},
                                           Wrong{"Comma", R"({"window": 3,})", "not valid JSON"},
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
                                           Wrong{"ScaleText", R"({"scale": "big"})", "scale"},
                                           Wrong{"ScaleNegative", R"({"scale": -1})", "scale = -1"},
                                           Wrong{"ScaleInfinite", R"({"scale": 1e300})", "scale"}),
                         [](const auto &info) { return info.param.name; });

TEST(ConfigFile, WithoutTensorsTheShapeMustBeThere) {
  for (const char *text : {R"({"kv_heads": 1, "qk_dim": 8})", R"({"query_heads": 1, "qk_dim": 8})",
                           R"({"query_heads": 1, "kv_heads": 1})"}) {
    const Result<ConfigFile> config = read(text);
    ASSERT_TRUE(config);
    const Result<Spec> spec = specOf(Operator::kDense, *config);
    ASSERT_FALSE(spec);
    EXPECT_NE(spec.status().toString().find("lacks"), std::string::npos) << spec.status().toString();
  }
}

TEST(ConfigFile, RulesOfTheSpecHold) {
  const Result<ConfigFile> config = read(R"({"query_heads": 5, "kv_heads": 2, "qk_dim": 8})");
  ASSERT_TRUE(config);
  EXPECT_NE(specOf(Operator::kDense, *config).status().toString().find("query_heads = 5"), std::string::npos);
}

TEST(ConfigFile, AMissingFileIsAnError) {
  EXPECT_EQ(ConfigFile::read("/nonexistent/config.json").status().code(), ErrorCode::kIoError);
}

} // namespace
} // namespace nsa::tools
