// The `//!` grammar: what is read, and for every rule the error that names file, line and rule.
#include "compiler/render/TemplateHeader.h"

#include <gtest/gtest.h>

using namespace nsa;

namespace {

Result<TemplateHeader> parseTile(const std::string &text) {
  return TemplateHeader::parse(text, "tile/t.mlir", TemplateKind::kTile);
}
Result<TemplateHeader> parseCuda(const std::string &text) {
  return TemplateHeader::parse(text, "cuda/t.cu", TemplateKind::kHandScheduled);
}

const std::string kMinimal = "//! template t\n//! operator window\n//! grid 1, 1, 1\n//! threads 32\n";

TEST(TemplateHeader, ReadsEveryLineOfATileProgram) {
  Result<TemplateHeader> header = parseTile("// A comment.\n"
                                            "\n"
                                            "//! template attention\n"
                                            "//! operator dense, window\n"
                                            "//! targets cpu, sm_90a\n"
                                            "//! fixed   qk_dim, group\n"
                                            "//! fixed   packed\n"
                                            "//! fixed   window: span\n"
                                            "//! let     pad = roundup(qk_dim, dot_step)\n"
                                            "//! choice  tile = 16 | 32 | 64\n"
                                            "//! require tile * pad * dtype_bytes <= shared_limit\n"
                                            "//! cost    op == window ? 100 / tile : 1\n"
                                            "//! grid    ceildiv(max_seqlen_q * group, tile), kv_heads, batch\n"
                                            "//! threads min(tile, 32) * 2\n"
                                            "func.func @attention() { return }\n");
  ASSERT_TRUE(header) << header.status().toString();
  EXPECT_EQ(header->name, "attention");
  EXPECT_EQ(header->operators, (std::vector{Operator::kDense, Operator::kWindow}));
  EXPECT_EQ(header->targets, (std::vector<std::string>{"cpu", "sm_90a"}));
  EXPECT_EQ(header->fixed, (std::vector<TemplateHeader::Fixed>{
                               {"qk_dim", {}}, {"group", {}}, {"packed", {}}, {"span", {Operator::kWindow}}}));
  EXPECT_TRUE(header->fixed[0].isOf(Operator::kDense));
  EXPECT_TRUE(header->fixed[3].isOf(Operator::kWindow));
  EXPECT_FALSE(header->fixed[3].isOf(Operator::kDense));
  ASSERT_EQ(header->choices.size(), 1u);
  EXPECT_EQ(header->choices[0].values, (std::vector<int64_t>{16, 32, 64}));
  ASSERT_EQ(header->steps.size(), 2u);
  EXPECT_EQ(header->steps[0].name, "pad");
  EXPECT_TRUE(header->steps[1].isRequire);
  EXPECT_EQ(header->steps[1].place.line, 11);
  EXPECT_EQ(header->grid[0].expression.text(), "ceildiv(max_seqlen_q * group, tile)");
  EXPECT_EQ(header->grid[2].expression.text(), "batch");
  EXPECT_TRUE(header->serves(Operator::kDense));
}

const std::string *findIncluded(std::string_view path) {
  static const std::string kShared = "// Shared.\n//! let twice = 2 * group\n//! choice tile = 16 | 32\n";
  static const std::string kCode = "//! let twice = 2\nint code;\n", kNested = "//! include header/shared.inc\n";
  return path == "header/shared.inc"   ? &kShared
         : path == "header/code.inc"   ? &kCode
         : path == "header/nested.inc" ? &kNested
                                       : nullptr;
}

TEST(TemplateHeader, IncludesTheLinesOfASharedHeader) {
  const std::string text = kMinimal + "//! fixed group\n//! include header/shared.inc\n//! require twice > tile\n";
  Result<TemplateHeader> header = TemplateHeader::parse(text, "tile/t.mlir", TemplateKind::kTile, findIncluded);
  ASSERT_TRUE(header) << header.status().toString();
  EXPECT_EQ(header->includes, std::vector<std::string>{"header/shared.inc"});
  ASSERT_EQ(header->steps.size(), 2u);
  EXPECT_EQ(header->steps[0].place.file, "header/shared.inc");
  EXPECT_EQ(header->steps[0].place.line, 2);
  EXPECT_EQ(header->steps[1].place.file, "tile/t.mlir");
  EXPECT_EQ(header->steps[1].place.line, 7);
}

TEST(TemplateHeader, AnIncludeThatBreaksARuleNamesItsPlace) {
  const struct {
    const char *lines, *place, *rule;
  } cases[] = {{"//! include header/none.inc\n", "tile/t.mlir:5", "there is no header 'header/none.inc'"},
               {"//! include shared.inc\n", "tile/t.mlir:5", "there is no header 'shared.inc'"},
               {"//! include header/shared.inc\n", "header/shared.inc:2", "'group' is known at launch only"},
               {"//! include header/code.inc\n", "header/code.inc:2", "holds header lines and comments only"},
               {"//! include header/nested.inc\n", "header/nested.inc:1", "may not include another one"},
               {"//! fixed group\n//! include header/shared.inc\n//! include header/shared.inc\n", "tile/t.mlir:7",
                "is included twice"}};
  for (const auto &[lines, place, rule] : cases) {
    Result<TemplateHeader> header =
        TemplateHeader::parse(kMinimal + lines, "tile/t.mlir", TemplateKind::kTile, findIncluded);
    ASSERT_FALSE(header) << lines;
    EXPECT_EQ(header.status().error().value, place);
    EXPECT_NE(header.status().error().rule.find(rule), std::string::npos) << header.status().toString();
  }
}

TEST(TemplateHeader, NamesOfKernelConstantsAreTaken) {
  for (const char *name : {"sequence_fields", "sequence_q_begin", "status_bad_page", "facts", "arguments"}) {
    Result<TemplateHeader> header = parseTile(kMinimal + "//! let " + name + " = 1\n");
    ASSERT_FALSE(header) << name;
    EXPECT_EQ(header.status().error().value, "tile/t.mlir:5");
  }
  Result<TemplateHeader> header = parseTile(kMinimal + "//! let next = sequence_fields + sequence_q_begin\n");
  EXPECT_TRUE(header) << header.status().toString();
}

TEST(TemplateHeader, ReadsTheLinesOfHandScheduledCuda) {
  Result<TemplateHeader> header = parseCuda(kMinimal + "//! fixed v_dim\n"
                                                       "//! param view q dtype 3\n"
                                                       "//! param view lse fp32 3\n"
                                                       "//! param i32 window\n"
                                                       "//! param f32 scale_log2\n"
                                                       "//! shared 64 * v_dim\n");
  ASSERT_TRUE(header) << header.status().toString();
  ASSERT_EQ(header->params.size(), 4u);
  EXPECT_EQ(header->params[0].dtype, "dtype");
  EXPECT_EQ(header->params[0].rank, 3);
  EXPECT_EQ(header->params[3].kind, ManifestParam::Kind::kF32);
  EXPECT_EQ(header->targets, std::vector<std::string>{"gpu"}) << "CUDA without a targets line means every GPU";
}

TEST(TemplateHeader, AParameterOfHandScheduledCudaMayHaveACondition) {
  Result<TemplateHeader> header = parseCuda(kMinimal + "//! fixed packed\n"
                                                       "//! param view q dtype 3\n"
                                                       "//! param view k_offset int32 1 if !packed && 2 > 1\n"
                                                       "//! param i32 window\n");
  ASSERT_TRUE(header) << header.status().toString();
  ASSERT_EQ(header->params.size(), 3u);
  ASSERT_EQ(header->conditions.size(), 3u);
  EXPECT_EQ(header->params[1].name, "k_offset");
  EXPECT_EQ(header->params[1].rank, 1);
  EXPECT_EQ(header->conditions[1].expression.text(), "!packed && 2 > 1");
  EXPECT_EQ(header->conditions[1].place.line, 7);
  EXPECT_FALSE(header->conditions[0].isPresent());
  EXPECT_FALSE(header->conditions[2].isPresent());
}

struct Fault {
  const char *name;
  const char *line; // stands after the four minimal lines, as line 5
  const char *rule; // part of the error
};

class HeaderFault : public testing::TestWithParam<Fault> {};

TEST_P(HeaderFault, NamesFileLineAndRule) {
  Result<TemplateHeader> header = parseTile(kMinimal + GetParam().line + "\ncode\n");
  ASSERT_FALSE(header);
  const ErrorInfo error = header.status().error();
  EXPECT_EQ(error.code, ErrorCode::kCompileFailed);
  EXPECT_EQ(error.field, "template");
  EXPECT_EQ(error.value, "tile/t.mlir:5");
  EXPECT_NE(error.rule.find(GetParam().rule), std::string::npos) << error.rule;
}

INSTANTIATE_TEST_SUITE_P(
    Grammar, HeaderFault,
    testing::Values(Fault{"UnknownKey", "//! choise a = 1", "unknown key 'choise'"},
                    Fault{"EmptyLine", "//!", "unknown key ''"},
                    Fault{"RepeatedKey", "//! template u", "'template' stands twice"},
                    Fault{"RepeatedGrid", "//! grid 1, 1, 1", "'grid' stands twice"},
                    Fault{"UnknownTargetsForm", "//! targets gpu cpu", "expected names separated by ','"},
                    Fault{"ParamInTile", "//! param i32 window", "belongs to hand-scheduled templates"},
                    Fault{"SharedInTile", "//! shared 12", "belongs to hand-scheduled templates"},
                    Fault{"LetWithoutEquals", "//! let a", "expected 'name = ...'"},
                    Fault{"LetBadName", "//! let 2a = 1", "expected a name before '='"},
                    Fault{"LetMeansItself", "//! let a = a + 1", "unknown name 'a'"},
                    Fault{"LetSyntax", "//! let a = 1 +", "found the end"},
                    Fault{"LetDriverValue", "//! let dot_step = 1", "is given by the target"},
                    Fault{"FixedOperatorName", "//! fixed window", "is the name of an operator or dtype"},
                    Fault{"FixedTwice", "//! fixed a, a", "'a' is declared twice"},
                    Fault{"FixedMissingName", "//! fixed a,", "found ''"},
                    Fault{"FixedOfUnknownOperator", "//! fixed windows: a", "must be one of dense, window"},
                    Fault{"FixedOfForeignOperator", "//! fixed dense: a", "operator 'dense' is not served"},
                    Fault{"FixedOfOperatorTwice", "//! fixed window, window: a", "operator 'window' stands twice"},
                    Fault{"FixedOfNoOperator", "//! fixed : a", "found ''"},
                    Fault{"FixedOfOperatorMissingName", "//! fixed window:", "found ''"},
                    Fault{"ChoiceEmpty", "//! choice a =", "integers separated by '|'"},
                    Fault{"ChoiceText", "//! choice a = x | 2", "found 'x'"},
                    Fault{"ChoiceTwice", "//! choice a = 2 | 2", "names '2' twice"},
                    Fault{"RequireUnknownName", "//! require tille > 2", "unknown name 'tille'"},
                    Fault{"RequireText", "//! require element == 2", "is text"},
                    Fault{"RequireLaunchName", "//! require batch > 2", "known at launch only"},
                    Fault{"RequireBigNumber", "//! require 99999999999999999999 > 1", "64 bits"},
                    Fault{"CostFloat", "//! cost 1.5", "decimal integers"}),
    [](const auto &info) { return info.param.name; });

TEST(TemplateHeader, UnknownOperatorNamesTheKnownOnes) {
  Result<TemplateHeader> header = parseTile("//! template t\n//! operator windows\n");
  ASSERT_FALSE(header);
  EXPECT_EQ(header.status().error().value, "tile/t.mlir:2");
  EXPECT_NE(header.status().error().rule.find("dense, window"), std::string::npos);
}

TEST(TemplateHeader, GridNeedsThreeAxes) {
  Result<TemplateHeader> header = parseTile("//! template t\n//! operator window\n//! grid max(1, 2), 1\n");
  ASSERT_FALSE(header);
  EXPECT_NE(header.status().error().rule.find("three expressions"), std::string::npos);
  EXPECT_NE(header.status().error().rule.find("found 2"), std::string::npos);
}

TEST(TemplateHeader, HeaderLinesMayNotFollowCode) {
  Result<TemplateHeader> header = parseTile(kMinimal + "func.func @t()\n//! choice a = 1 | 2\n");
  ASSERT_FALSE(header);
  EXPECT_EQ(header.status().error().value, "tile/t.mlir:6");
  EXPECT_NE(header.status().error().rule.find("may not follow code"), std::string::npos);
}

TEST(TemplateHeader, MissingLinesAreNamed) {
  for (const char *missing : {"template", "operator", "grid", "threads"}) {
    std::string text = kMinimal;
    size_t begin = text.find(std::string("//! ") + missing);
    text.erase(begin, text.find('\n', begin) - begin + 1);
    Result<TemplateHeader> header = parseTile(text);
    ASSERT_FALSE(header) << missing;
    EXPECT_NE(header.status().error().rule.find(std::string("'//! ") + missing + "'"), std::string::npos)
        << header.status().toString();
  }
}

TEST(TemplateHeader, HandScheduledFaults) {
  const Fault faults[] = {{"", "//! param view q dtype", "1 to 5"},
                          {"", "//! param view q dtype 9", "1 to 5"},
                          {"", "//! param view q float 3", "a view's type"},
                          {"", "//! param i32 window 3", "expected 'param view"},
                          {"", "//! param u32 window", "expected 'param view"},
                          {"", "//! param map q_map", "the name of the map's view"},
                          {"", "//! param map q_map q 64, 1", "three sizes"},
                          {"", "//! param map q_map q 64, 1, wide", "unknown name 'wide'"},
                          {"", "//! param i32 a\n//! param map q_map q 64, 1, 64", "maps come before other"},
                          {"", "//! param i32 a\n//! param i32 a", "'a' is declared twice"},
                          {"", "//! param map q_map q 64, 1, 64 if 1", "a map has no condition"},
                          {"", "//! param i32 window if", "expected 'param view"},
                          {"", "//! param i32 window if 1 +", "found the end"},
                          {"", "//! param i32 window if wide", "unknown name 'wide'"},
                          {"", "//! param i32 window if batch == 1", "'batch' is known at launch only"},
                          {"", "//! targets cpu", "cannot target the cpu"},
                          {"", "", "declares its arguments"}};
  for (const Fault &fault : faults) {
    Result<TemplateHeader> header = parseCuda(kMinimal + fault.line + "\n");
    ASSERT_FALSE(header) << fault.line;
    EXPECT_NE(header.status().error().rule.find(fault.rule), std::string::npos) << header.status().toString();
  }
}

} // namespace
