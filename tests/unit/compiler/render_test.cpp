// Rendering line for line, and the grid expressions that reach the manifest.
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

TEST(Renderer, UnknownAndMalformedHolesNameTheLine) {
  Result<std::string> unknown = renderTemplate("one\ntwo ${groups}\n", "tile/t.mlir", someValues());
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.status().error().value, "tile/t.mlir:2");
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
