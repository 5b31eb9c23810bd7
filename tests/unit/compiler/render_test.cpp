// Rendering line for line, and the grid expressions that reach the manifest.
#include "compiler/render/Declarations.h"
#include "compiler/render/Renderer.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace nsa;

namespace {

Values someValues() {
  Values values;
  values.set("element", std::string("bf16"));
  values.set("group", 8);
  values.set("offset", -3);
  return values;
}

TEST(Renderer, FillsHolesLineForLine) {
  Result<std::string> text = renderTemplate("a ${element} ${group}x${group}\n$ {x} $$\n\n${offset}", "t", someValues());
  ASSERT_TRUE(text) << text.status().toString();
  EXPECT_EQ(*text, "a bf16 8x8\n$ {x} $$\n\n-3");
}

TEST(Renderer, KernelConstantsAreHoles) {
  Result<std::string> text = renderTemplate("${sequence_c_begin} ${sequence_fields} ${status_bad_page}", "t", {});
  ASSERT_TRUE(text) << text.status().toString();
  EXPECT_EQ(*text, "4 8 10");
  EXPECT_FALSE(renderTemplate("${sequence_batch}", "t", {}));
  EXPECT_FALSE(renderTemplate("${status_ok}", "t", {}));
}

TEST(Declarations, FollowFromTheHeader) {
  Result<TemplateHeader> header = readCudaHeader("//! kernel t serves window\n//! fixed dtype, qk_dim\n"
                                                 "//! choice key_tile = 16 | 32\n//! const wide = qk_dim * 1073741824\n"
                                                 "//! grid 1, 1, 1\n//! threads 32\n"
                                                 "//! param map q_map q qk_dim, 1, 1\n"
                                                 "//! param view q bf16 3\n//! param view lse fp32 3\n"
                                                 "//! param view sequences int32 2\n//! param i64 bytes\n"
                                                 "//! param i32 window\n//! param f32 scale_log2\n",
                                                 "cuda/t.cu");
  ASSERT_TRUE(header) << header.status().toString();
  Values values;
  values.set("element", std::string("bf16"));
  values.set("dtype", std::string("bf16"));
  values.set("qk_dim", 64);
  values.set("key_tile", 32);
  values.set("wide", int64_t{64} << 30);
  const std::string facts = declareFacts(*header, values);
  EXPECT_TRUE(facts.starts_with("struct Facts {\n  using Element = bf16;\n  static constexpr int32 kQkDim = 64;\n"
                                "  static constexpr int32 kKeyTile = 32;\n  static constexpr int64 kWide = "
                                "68719476736;\n  static constexpr int32 kSequenceQBegin = 0;\n"))
      << facts;
  EXPECT_EQ(declareArguments(header->params), "struct Arguments {\n  TensorMap q_map;\n  View<bf16, 3> q;\n"
                                              "  View<float, 3> lse;\n  View<int32, 2> sequences;\n  int64 bytes;\n"
                                              "  alignas(8) int32 window;\n  alignas(8) float scale_log2;\n};");
  header->params[1].pageRows = 64;
  EXPECT_NE(declareArguments(header->params).find("  PagedView<bf16, 3, 64> q;\n"), std::string::npos);
}

TEST(Renderer, UnknownAndMalformedHolesNameTheLine) {
  Result<std::string> unknown = renderTemplate("one\ntwo ${groups}\n", "cuda/t.cu", someValues());
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.status().error().value, "cuda/t.cu:2");
  EXPECT_NE(unknown.status().error().rule.find("'${groups}'"), std::string::npos);
  for (const char *malformed : {"${", "${group", "${}", "${group + 1}", "${ group}"}) {
    Result<std::string> text = renderTemplate(std::string("\n\n") + malformed, "t", someValues());
    ASSERT_FALSE(text) << malformed;
    EXPECT_EQ(text.status().error().value, "t:3");
  }
}

TEST(Renderer, GridKeepsLaunchNamesOnly) {
  Result<Expression> expression = Expression::parse("ceildiv(max_seqlen_q * group, 2 - offset) + max(batch, group)");
  ASSERT_TRUE(expression);
  Result<Expression> bound = bindKnownNames(*expression, someValues());
  ASSERT_TRUE(bound) << bound.status().toString();
  EXPECT_EQ(bound->text(), "ceildiv(max_seqlen_q * 8, 2 - (-3)) + max(batch, 8)");
  EXPECT_EQ(bound->names(), (std::vector<std::string>{"max_seqlen_q", "batch"}));
}

} // namespace
