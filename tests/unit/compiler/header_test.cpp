// The declarations of a template, in both ways to write them: what is read, and for every rule the error that names
// file, line and rule.
#include "compiler/render/TileHeader.h"
#include "tests/unit/language/parsed.h"

#include <gtest/gtest.h>

using namespace nsa;

namespace {

Result<TemplateHeader> parseTile(const std::string &text) {
  const language::Parsed parsed(text, "tile/t.tile");
  return parsed.diagnostics.hasErrors() ? templateError(parsed.diagnostics) : readTileHeader(*parsed.tree);
}
Result<TemplateHeader> parseCuda(const std::string &text) { return readCudaHeader(text, "cuda/t.cu"); }

const std::string kMinimal = "//! kernel t serves window\n//! grid 1, 1, 1\n//! threads 32\n//! param i32 n\n";
const std::string kMinimalTile = "kernel t serves window\n\ngrid 1, 1, 1\nthreads 32\n";

void expectTheLines(const Result<TemplateHeader> &header) {
  ASSERT_TRUE(header) << header.status().toString();
  EXPECT_EQ(header->name, "attention");
  EXPECT_EQ(header->operators, (std::vector{Operator::kDense, Operator::kWindow}));
  EXPECT_EQ(header->targets, (std::vector<std::string>{"gpu", "sm_90a"}));
  std::vector<std::string> fixed;
  for (const TemplateHeader::Fixed &value : header->fixed)
    fixed.push_back(value.name);
  EXPECT_EQ(fixed, (std::vector<std::string>{"qk_dim", "group", "packed", "span"}));
  Values values;
  for (const char *op : {"window", "dense"}) {
    values.set("op", std::string(op));
    EXPECT_TRUE(*header->fixed[0].isNeeded(values));
    EXPECT_EQ(*header->fixed[3].isNeeded(values), op == std::string("window"));
  }
  ASSERT_EQ(header->choices.size(), 2u);
  EXPECT_EQ(header->choices[0].values, (std::vector<int64_t>{16, 32, 64}));
  EXPECT_EQ(header->choices[1].name, "warps");
  ASSERT_EQ(header->steps.size(), 3u);
  EXPECT_EQ(header->steps[0].name, "pad");
  EXPECT_EQ(header->steps[1].name, "twice");
  EXPECT_TRUE(header->steps[2].isRequire);
  EXPECT_EQ(header->steps[2].place.line, 9);
  EXPECT_EQ(header->cost.expression.text(), "op == window ? 100 / tile : 1");
  EXPECT_EQ(header->grid[0].expression.text(), "ceildiv(max_seqlen_q * group, tile)");
  EXPECT_EQ(header->grid[2].expression.text(), "batch");
  EXPECT_TRUE(header->serves(Operator::kDense));
}

TEST(TileHeader, HasEveryDeclaration) {
  expectTheLines(parseTile("// A comment.\n"
                           "kernel  attention serves dense, window\n"
                           "targets gpu, sm_90a\n"
                           "fixed   qk_dim, group\n"
                           "fixed   packed\n"
                           "fixed   span when op == window\n"
                           "const   pad = roundup(qk_dim, dot_step), twice = 2 * pad\n"
                           "choice  tile = 16 | 32 | 64, warps = 1 | 2\n"
                           "require tile * pad * dtype_bytes <= shared_limit\n"
                           "cost    op == window ? 100 / tile :\n"
                           "        1\n"
                           "grid    row = ceildiv(max_seqlen_q * group, tile), head = kv_heads, batch = batch\n"
                           "threads min(tile, 32) * 2\n"
                           "axis    x = tile\n"
                           "tensor  q[time; x: qk_dim]\n"));
}

TEST(TileHeader, ADimensionOfSeveralPartsIsTheirProduct) {
  Result<TemplateHeader> header = parseTile("kernel t serves window\nchoice parts = 2\nthreads 32\n"
                                            "grid (query = max_seqlen_q, part = parts + 1), 1, (one = batch)\n");
  ASSERT_TRUE(header) << header.status().toString();
  EXPECT_EQ(header->grid[0].expression.text(), "max_seqlen_q * (parts + 1)");
  EXPECT_EQ(header->grid[1].expression.text(), "1");
  EXPECT_EQ(header->grid[2].expression.text(), "batch");
}

TEST(CudaHeader, HasEveryLine) {
  expectTheLines(parseCuda("// A comment.\n"
                           "//! kernel  attention serves dense, window\n"
                           "//! targets gpu, sm_90a\n"
                           "//! fixed   qk_dim, group\n"
                           "//! fixed   packed\n"
                           "//! fixed   span when op == window\n"
                           "//! const   pad = roundup(qk_dim, dot_step), twice = 2 * pad\n"
                           "//! choice  tile = 16 | 32 | 64, warps = 1 | 2\n"
                           "//! require tile * pad * dtype_bytes <= shared_limit\n"
                           "//! cost    op == window ? 100 / tile : 1\n"
                           "//! grid    ceildiv(max_seqlen_q * group, tile), kv_heads, batch\n"
                           "//! threads min(tile, 32) * 2\n"
                           "//! param   i32 window\n"
                           "code\n"));
}

const std::string *findIncluded(std::string_view path) {
  static const std::string kShared = "// Shared.\n//! const twice = 2 * group\n//! choice tile = 16 | 32\n";
  static const std::string kCode = "//! const twice = 2\nint code;\n", kNested = "//! include header/shared.inc\n";
  return path == "header/shared.inc"   ? &kShared
         : path == "header/code.inc"   ? &kCode
         : path == "header/nested.inc" ? &kNested
                                       : nullptr;
}

TEST(CudaHeader, IncludesTheLinesOfASharedHeader) {
  const std::string text = kMinimal + "//! fixed group\n//! include header/shared.inc\n//! require twice > tile\n";
  Result<TemplateHeader> header = readCudaHeader(text, "cuda/t.cu", findIncluded);
  ASSERT_TRUE(header) << header.status().toString();
  EXPECT_EQ(header->includes, std::vector<std::string>{"header/shared.inc"});
  ASSERT_EQ(header->steps.size(), 2u);
  EXPECT_EQ(header->steps[0].place.file, "header/shared.inc");
  EXPECT_EQ(header->steps[0].place.line, 2);
  EXPECT_EQ(header->steps[1].place.file, "cuda/t.cu");
  EXPECT_EQ(header->steps[1].place.line, 7);
}

TEST(CudaHeader, AnIncludeThatBreaksARuleNamesItsPlace) {
  const struct {
    const char *lines, *place, *rule;
  } cases[] = {{"//! include header/none.inc\n", "cuda/t.cu:5", "there is no header 'header/none.inc'"},
               {"//! include shared.inc\n", "cuda/t.cu:5", "there is no header 'shared.inc'"},
               {"//! include header/shared.inc\n", "header/shared.inc:2", "'group' is known at launch only"},
               {"//! include header/code.inc\n", "header/code.inc:2", "holds header lines and comments only"},
               {"//! include header/nested.inc\n", "header/nested.inc:1", "may not include another one"},
               {"//! fixed group\n//! include header/shared.inc\n//! include header/shared.inc\n", "cuda/t.cu:7",
                "is included twice"}};
  for (const auto &[lines, place, rule] : cases) {
    Result<TemplateHeader> header = readCudaHeader(kMinimal + lines, "cuda/t.cu", findIncluded);
    ASSERT_FALSE(header) << lines;
    EXPECT_EQ(header.status().error().value, place);
    EXPECT_NE(header.status().error().rule.find(rule), std::string::npos) << header.status().toString();
  }
}

TEST(CudaHeader, NamesOfKernelConstantsAreTaken) {
  for (const char *name : {"sequence_fields", "sequence_q_begin", "status_bad_page", "facts", "arguments"}) {
    Result<TemplateHeader> header = parseCuda(kMinimal + "//! const " + name + " = 1\n");
    ASSERT_FALSE(header) << name;
    EXPECT_EQ(header.status().error().value, "cuda/t.cu:5");
  }
  Result<TemplateHeader> header = parseCuda(kMinimal + "//! const next = sequence_fields + sequence_q_begin\n");
  EXPECT_TRUE(header) << header.status().toString();
}

TEST(CudaHeader, ReadsTheLinesOfHandScheduledCuda) {
  Result<TemplateHeader> header = parseCuda(kMinimal + "//! fixed v_dim\n"
                                                       "//! param view q dtype 3\n"
                                                       "//! param view lse fp32 3\n"
                                                       "//! param i32 window\n"
                                                       "//! param f32 scale_log2\n"
                                                       "//! shared 64 * v_dim\n");
  ASSERT_TRUE(header) << header.status().toString();
  ASSERT_EQ(header->params.size(), 5u);
  EXPECT_EQ(header->params[1].dtype, "dtype");
  EXPECT_EQ(header->params[1].rank, 3);
  EXPECT_EQ(header->params[4].kind, ManifestParam::Kind::kF32);
  EXPECT_EQ(header->targets, std::vector<std::string>{"gpu"}) << "CUDA without a targets line means every GPU";
}

TEST(CudaHeader, AParameterOfHandScheduledCudaMayHaveACondition) {
  Result<TemplateHeader> header = parseCuda(kMinimal + "//! fixed packed\n"
                                                       "//! param view q dtype 3\n"
                                                       "//! param view k_offset int32 1 if !packed && 2 > 1\n"
                                                       "//! param i32 window\n");
  ASSERT_TRUE(header) << header.status().toString();
  ASSERT_EQ(header->params.size(), 4u);
  ASSERT_EQ(header->conditions.size(), 4u);
  EXPECT_EQ(header->params[2].name, "k_offset");
  EXPECT_EQ(header->params[2].rank, 1);
  EXPECT_EQ(header->conditions[2].expression.text(), "!packed && 2 > 1");
  EXPECT_EQ(header->conditions[2].place.line, 7);
  EXPECT_FALSE(header->conditions[0].isPresent());
  EXPECT_FALSE(header->conditions[3].isPresent());
}

struct Fault {
  const char *name;
  const char *line; // stands after the four minimal lines, as line 5
  const char *rule; // part of the error
};

void expectFault(const Result<TemplateHeader> &header, const char *place, const Fault &fault) {
  ASSERT_FALSE(header);
  const ErrorInfo error = header.status().error();
  EXPECT_EQ(error.code, ErrorCode::kCompileFailed);
  EXPECT_EQ(error.field, "template");
  EXPECT_EQ(error.value.substr(0, error.value.find(':', error.value.find(':') + 1)), place);
  EXPECT_NE(error.rule.find(fault.rule), std::string::npos) << error.rule;
}

// What both ways to write a header hold to.
class HeaderFault : public testing::TestWithParam<Fault> {};

TEST_P(HeaderFault, NamesFileLineAndRule) {
  expectFault(parseCuda(kMinimal + "//! " + GetParam().line + "\ncode\n"), "cuda/t.cu:5", GetParam());
  expectFault(parseTile(kMinimalTile + GetParam().line + "\n"), "tile/t.tile:5", GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Rules, HeaderFault,
    testing::Values(Fault{"RepeatedGrid", "grid 1, 1, 1", "'grid' stands twice"},
                    Fault{"ConstMeansItself", "const a = a + 1", "unknown name 'a'"},
                    Fault{"ConstDriverValue", "const dot_step = 1", "is given by the target"},
                    Fault{"FixedOperatorName", "fixed window", "is the name of an operator or dtype"},
                    Fault{"FixedTwice", "fixed a, a", "'a' is declared twice"},
                    Fault{"FixedOfUnknownOperator", "fixed a when op == windows", "unknown name 'windows'"},
                    Fault{"ChoiceTwice", "choice a = 2 | 2", "names '2' twice"},
                    Fault{"RequireUnknownName", "require tille > 2", "unknown name 'tille'"},
                    Fault{"RequireText", "require element == 2", "is text"},
                    Fault{"RequireLaunchName", "require batch > 2", "known at launch only"}),
    [](const auto &info) { return info.param.name; });

class CudaHeaderFault : public testing::TestWithParam<Fault> {};

TEST_P(CudaHeaderFault, NamesFileLineAndRule) {
  expectFault(parseCuda(kMinimal + GetParam().line + "\ncode\n"), "cuda/t.cu:5", GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Grammar, CudaHeaderFault,
    testing::Values(Fault{"UnknownKey", "//! choise a = 1", "unknown key 'choise'"},
                    Fault{"EmptyLine", "//!", "unknown key ''"},
                    Fault{"RepeatedKey", "//! kernel u serves dense", "'kernel' stands twice"},
                    Fault{"UnknownTargetsForm", "//! targets gpu cpu", "expected names separated by ','"},
                    Fault{"ConstWithoutEquals", "//! const a", "expected 'name = ...'"},
                    Fault{"ConstBadName", "//! const 2a = 1", "expected a name before '='"},
                    Fault{"ConstSyntax", "//! const a = 1 +", "found the end"},
                    Fault{"FixedMissingName", "//! fixed a,", "found ''"},
                    Fault{"FixedWithoutNames", "//! fixed when op == window", "expected names separated by ','"},
                    Fault{"ChoiceEmpty", "//! choice a =", "integers separated by '|'"},
                    Fault{"ChoiceText", "//! choice a = x | 2", "found 'x'"},
                    Fault{"RequireBigNumber", "//! require 99999999999999999999 > 1", "64 bits"},
                    Fault{"CostFloat", "//! cost 1.5", "decimal integers"}),
    [](const auto &info) { return info.param.name; });

class TileHeaderFault : public testing::TestWithParam<Fault> {};

TEST_P(TileHeaderFault, NamesFileLineAndRule) {
  expectFault(parseTile(kMinimalTile + GetParam().line + "\n"), "tile/t.tile:5", GetParam());
}

INSTANTIATE_TEST_SUITE_P(Grammar, TileHeaderFault,
                         testing::Values(Fault{"RepeatedThreads", "threads 64", "'threads' stands twice"},
                                         Fault{"Reference", "reference other",
                                               "'reference' stands in a kernel that serves an operator"},
                                         Fault{"RequireOfATile", "require sum(1) over x", "unknown function 'sum'"},
                                         Fault{"UnknownItem", "choise a = 1", "choise"}),
                         [](const auto &info) { return info.param.name; });

TEST(TileHeader, MissingDeclarationsAreNamed) {
  const struct {
    const char *text, *rule;
  } cases[] = {{"kernel t\ngrid 1, 1, 1\nthreads 32\n", "kernel 't' serves no operator"},
               {"kernel t serves windows\n", "must be one of dense, window"},
               {"kernel t serves window, window\n", "operator 'window' stands twice"},
               {"kernel t serves window\nthreads 32\n", "the kernel declares no grid"},
               {"kernel t serves window\ngrid 1, 1, 1\n", "the kernel declares no threads"},
               {"kernel t serves window\ngrid 1, 1\n", "a grid has three dimensions, found 2"}};
  for (const auto &[text, rule] : cases) {
    Result<TemplateHeader> header = parseTile(text);
    ASSERT_FALSE(header) << text;
    EXPECT_NE(header.status().error().rule.find(rule), std::string::npos) << header.status().toString();
  }
}

TEST(CudaHeader, UnknownOperatorNamesTheKnownOnes) {
  Result<TemplateHeader> header = parseCuda("//! kernel t serves windows\n");
  ASSERT_FALSE(header);
  EXPECT_EQ(header.status().error().value, "cuda/t.cu:1");
  EXPECT_NE(header.status().error().rule.find("dense, window"), std::string::npos);
}

TEST(CudaHeader, GridNeedsThreeAxes) {
  Result<TemplateHeader> header = parseCuda("//! kernel t serves window\n//! grid max(1, 2), 1\n");
  ASSERT_FALSE(header);
  EXPECT_NE(header.status().error().rule.find("three expressions"), std::string::npos);
  EXPECT_NE(header.status().error().rule.find("found 2"), std::string::npos);
}

TEST(CudaHeader, HeaderLinesMayNotFollowCode) {
  Result<TemplateHeader> header = parseCuda(kMinimal + "code\n//! choice a = 1 | 2\n");
  ASSERT_FALSE(header);
  EXPECT_EQ(header.status().error().value, "cuda/t.cu:6");
  EXPECT_NE(header.status().error().rule.find("may not follow code"), std::string::npos);
}

TEST(CudaHeader, MissingLinesAreNamed) {
  for (const char *missing : {"kernel", "grid", "threads"}) {
    std::string text = kMinimal;
    size_t begin = text.find(std::string("//! ") + missing);
    text.erase(begin, text.find('\n', begin) - begin + 1);
    Result<TemplateHeader> header = parseCuda(text);
    ASSERT_FALSE(header) << missing;
    EXPECT_NE(header.status().error().rule.find(std::string("'//! ") + missing + "'"), std::string::npos)
        << header.status().toString();
  }
}

TEST(CudaHeader, HandScheduledFaults) {
  const Fault faults[] = {{"", "//! param view q dtype", "1 to 5"},
                          {"", "//! param view q dtype 9", "1 to 5"},
                          {"", "//! param view q float 3", "a view's type"},
                          {"", "//! param view q dtype 3 paged", "1 to 5"},
                          {"", "//! param view q dtype 3 paged rows", "unknown name 'rows'"},
                          {"", "//! param i32 window paged 4", "expected 'param view"},
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
    Result<TemplateHeader> header =
        parseCuda("//! kernel t serves window\n//! grid 1, 1, 1\n//! threads 32\n" + std::string(fault.line) + "\n");
    ASSERT_FALSE(header) << fault.line;
    EXPECT_NE(header.status().error().rule.find(fault.rule), std::string::npos) << header.status().toString();
  }
}

} // namespace
