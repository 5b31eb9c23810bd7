#include "runtime/base/manifest.h"

#include <gtest/gtest.h>

namespace nsa {
namespace {

Manifest example() {
  Manifest manifest;
  manifest.entry = "attention";
  manifest.templateName = "attention";
  manifest.op = "window";
  manifest.target = "sm_90a";
  manifest.fixed = {{"group", "8"}, {"dtype", "bf16"}};
  manifest.config = {{"query_tile", "64"}, {"key_tile", "64"}};
  manifest.revision = "00ff";
  manifest.params = {{ManifestParam::Kind::kView, "q", "bf16", 3},
                     {ManifestParam::Kind::kView, "k", "bf16", 3, 64},
                     {ManifestParam::Kind::kView, "d_k", "bf16", 3, 0, /*isGradient=*/true},
                     {ManifestParam::Kind::kView, "cu_seqlens_q", "int32", 1},
                     {ManifestParam::Kind::kI32, "window", "", 0},
                     {ManifestParam::Kind::kI64, "offset", "", 0},
                     {ManifestParam::Kind::kF32, "scale_log2", "", 0}};
  manifest.grid[0] = *Expression::parse("ceildiv(max_seqlen_q * 8, 64)");
  manifest.grid[1] = *Expression::parse("kv_heads");
  manifest.grid[2] = *Expression::parse("batch");
  manifest.threads = 128;
  manifest.sharedBytes = 65536;
  manifest.scratchBytes = 512;
  manifest.evidence = {{"registers", "168"}};
  return manifest;
}

// The bytes that other readers of a database rely on (docs/cache_format.md).
constexpr const char *kText = "manifest 1\n"
                              "entry attention\n"
                              "template attention\n"
                              "operator window\n"
                              "target sm_90a\n"
                              "fixed dtype=bf16 group=8\n"
                              "config key_tile=64 query_tile=64\n"
                              "revision 00ff\n"
                              "param view q bf16 3\n"
                              "param view k bf16 3 64\n"
                              "param gradient d_k bf16 3\n"
                              "param view cu_seqlens_q int32 1\n"
                              "param i32 window\n"
                              "param i64 offset\n"
                              "param f32 scale_log2\n"
                              "grid ceildiv(max_seqlen_q * 8, 64) ; kv_heads ; batch\n"
                              "threads 128\n"
                              "shared 65536\n"
                              "scratch 512\n"
                              "evidence registers=168\n";

std::string with(const std::string &line, const std::string &replacement) {
  std::string text = kText;
  size_t at = text.find(line);
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, line.size(), replacement);
}

TEST(Manifest, TextIsFixed) { EXPECT_EQ(example().serialize(), kText); }

TEST(Manifest, RoundTrip) {
  Result<Manifest> parsed = Manifest::parse(kText);
  ASSERT_TRUE(parsed) << parsed.status().toString();
  Manifest expected = example();
  EXPECT_EQ(parsed->params, expected.params);
  EXPECT_EQ(parsed->fixed, expected.fixed);
  EXPECT_EQ(parsed->config, expected.config);
  EXPECT_EQ(parsed->evidence, expected.evidence);
  EXPECT_EQ(parsed->grid[0], expected.grid[0]);
  EXPECT_EQ(parsed->sharedBytes, 65536);
  EXPECT_EQ(parsed->scratchBytes, 512);
  EXPECT_EQ(parsed->slotCount(), 5 + 7 + 5 + 3 + 1 + 1 + 1);
  EXPECT_EQ(parsed->serialize(), kText);
}

TEST(Manifest, OptionalLinesMayBeAbsent) {
  Manifest small = example();
  small.fixed.clear();
  small.config.clear();
  small.evidence.clear();
  small.params.clear();
  small.sharedBytes = small.scratchBytes = 0;
  Result<Manifest> parsed = Manifest::parse(small.serialize());
  ASSERT_TRUE(parsed) << parsed.status().toString();
  EXPECT_EQ(parsed->serialize(), small.serialize());
}

TEST(Manifest, ToleratesBlankLinesAndCarriageReturns) {
  EXPECT_TRUE(Manifest::parse(with("revision 00ff\n", "\r\nrevision 00ff\r\n\n")));
}

TEST(Manifest, MapsComeFirstAndKeepTheirSizes) {
  const std::string map = "param map q_map q bf16 192 16 4\n";
  Result<Manifest> parsed = Manifest::parse(with("param view q bf16 3\n", map + "param view q bf16 3\n"));
  ASSERT_TRUE(parsed) << parsed.status().toString();
  const ManifestParam &param = parsed->params.front();
  EXPECT_EQ(param.kind, ManifestParam::Kind::kMap);
  EXPECT_EQ(param.view, "q");
  EXPECT_EQ(param.columns, 192);
  EXPECT_EQ(param.boxHeads, 16);
  EXPECT_EQ(param.boxRows, 4);
  EXPECT_EQ(param.slots(), 16);
  EXPECT_NE(parsed->serialize().find(map), std::string::npos) << parsed->serialize();
  const std::pair<const char *, const char *> faults[] = {
      {"param map q_map q f16 192 16 4\n", "the element type must be"},
      {"param map q_map q bf16 0 16 4\n", "columns, heads and rows must be integers from 1 to"},
      {"param map q_map q bf16 192 16 x\n", "columns, heads and rows must be integers from 1 to"},
      {"param map q_map q bf16 192 16 17\n", "a box must have at most 256 rows"},
      {"param map q_map q bf16 12 16 4\n", "a row must be a multiple of 16 bytes"},
      {"param map q_map q bf16 192 16\n", "'map NAME VIEW DTYPE COLUMNS HEADS ROWS'"},
      {"param i32 first\nparam map q_map q bf16 192 16 4\n", "maps must come before other parameters"}};
  for (const auto &[line, expected] : faults) {
    parsed = Manifest::parse(with("param view q bf16 3\n", line + std::string("param view q bf16 3\n")));
    ASSERT_FALSE(parsed) << line;
    EXPECT_NE(parsed.status().toString().find(expected), std::string::npos) << parsed.status().toString();
  }
}

TEST(Manifest, ErrorsNameLineAndRule) {
  struct {
    std::string text, expected;
  } cases[] = {
      {"", "must begin with 'manifest 1'"},
      {with("manifest 1", "manifest 2"), "'manifest 2': must begin with 'manifest 1'"},
      {with("entry attention\n", ""), "the line 'entry' is missing"},
      {with("grid ceildiv(max_seqlen_q * 8, 64) ; kv_heads ; batch\n", ""), "the line 'grid' is missing"},
      {with("threads 128\n", ""), "the line 'threads' is missing"},
      {with("entry attention", "entry two words"), "'entry two words': needs one word"},
      {with("entry attention", "entry"), "'entry': needs one word"},
      {with("revision 00ff\n", "revision 00ff\nrevision 01\n"), "'revision 01': the line is repeated"},
      {with("shared 65536", "colour blue"), "'colour blue': unknown key 'colour'"},
      {with("threads 128", "threads 0"), "'threads 0': needs an integer of at least 1"},
      {with("threads 128", "threads 99999999999"), "needs an integer"},
      {with("shared 65536", "shared -1"), "needs an integer of at least 0"},
      {with("shared 65536", "shared 12x"), "needs an integer"},
      {with("q bf16 3", "q bf16 6"), "the rank must be an integer from 1 to 5"},
      {with("q bf16 3", "q bf16 0"), "the rank must be"},
      {with("q bf16 3", "q f16 3"), "the element type must be bf16, fp16, fp32 or int32"},
      {with("k bf16 3 64", "k bf16 3 0"), "the rows of a page must be an integer of at least 1"},
      {with("k bf16 3 64", "k bf16 3 64k"), "the rows of a page must be an integer of at least 1"},
      {with("k bf16 3 64", "k bf16 1 64"), "a view of pages must have at least 2 coordinates"},
      {with("gradient d_k bf16 3", "gradient d_k int32 3"),
       "the element type of a gradient must be bf16, fp16 or fp32"},
      {with("gradient d_k bf16 3", "gradient d_k bf16 3 64"), "'gradient NAME DTYPE RANK', "},
      {with("k bf16 3 64", "k bf16 3 64 8"), "needs 'view NAME DTYPE RANK [PAGE_ROWS]', "},
      {with("param i32 window", "param i8 window"), "needs 'view NAME DTYPE RANK [PAGE_ROWS]', "},
      {with("param i32 window", "param"), "needs 'view NAME DTYPE RANK [PAGE_ROWS]', "},
      {with("param i32 window", "param i32 q"), "the name is used by an earlier parameter"},
      {with(" ; batch", ""), "needs three expressions"},
      {with(" ; batch", " ; batch ; 1"), "needs three expressions"},
      {with("; kv_heads ;", "; kv_heads + ;"), "expected a number"},
      {with("dtype=bf16", "dtype"), "each value needs the form name=value"},
      {with("group=8", "dtype=8"), "each name may stand once"},
  };
  for (const auto &c : cases) {
    Result<Manifest> parsed = Manifest::parse(c.text);
    ASSERT_FALSE(parsed) << c.expected;
    EXPECT_NE(parsed.status().toString().find(c.expected), std::string::npos) << parsed.status().toString();
  }
}

TEST(Values, RoundTripAndOrder) {
  auto values = parseValues("  b=2 a=x=y\t c=3 ");
  ASSERT_TRUE(values);
  EXPECT_EQ(values->at("a"), "x=y");
  EXPECT_EQ(formatValues(*values), "a=x=y b=2 c=3");
  EXPECT_TRUE(parseValues("")->empty());
  for (const char *bad : {"=1", "a=", "a", "a=1 a=2"})
    EXPECT_FALSE(parseValues(bad)) << bad;
}

} // namespace
} // namespace nsa
