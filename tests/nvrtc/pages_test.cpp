// A tile program over views of pages, from template to cubin on every architecture: pages of one row, of an odd number,
// of a power of two, and none, by the type alone. Rows come in through shared memory and through registers, and go out.
#include "tests/harness/template_folder.h"
#include "tests/nvrtc/nvrtc_expected.h"
#include "tests/nvrtc/sass.h"
#include "tests/unit/compiler/compile_call.h"

#include <gtest/gtest.h>

using namespace nsa;
using namespace nsa::test;

namespace {

const std::string kPagedRows = R"(// Products of rows in pages, for a test.
//! template paged_rows
//! operator window
//! fixed    dtype, qk_dim, v_dim, group, packed, page_size, many_queries
//! choice   warps = 1 | 4
//! grid     1, 1, batch
//! threads  32 * warps

func.func @paged_rows(
    %k: !tile.view<${element}, 3, ${page_size}>, %v: !tile.view<${element}, 3, ${page_size}>, %lse: !tile.view<f32, 3, ${page_size}>,
    %out: !tile.view<f32, 3, ${page_size}>, %window: i32) attributes {tile.warps = ${warps} : i32} {
  %zero = arith.constant 0 : i32
  %zero_f = arith.constant 0.0 : f32
  %sequence = tile.program_id z
  %has_k = tile.present %k : !tile.view<${element}, 3, ${page_size}>
  %keys = arith.select %has_k, %k, %v : !tile.view<${element}, 3, ${page_size}>
  %first = tile.load_scalar %lse[%sequence, %window, %zero] : !tile.view<f32, 3, ${page_size}>
  %queries = tile.load %v rows(%r) {
    %exists = arith.cmpi slt, %r, %window : i32
    tile.at [%sequence, %r, %zero] if %exists
  } : !tile.view<${element}, 3, ${page_size}> -> tensor<64x64x${element}>
  %tile = tile.load %keys rows(%r) {
    %time = arith.subi %window, %r : i32
    %exists = arith.cmpi sge, %time, %zero : i32
    tile.at [%sequence, %time, %zero] if %exists
  } : !tile.view<${element}, 3, ${page_size}> -> tensor<64x64x${element}>
  %row = tile.load %lse rows(%r) {
    %exists = arith.cmpi slt, %r, %window : i32
    tile.at [%sequence, %r, %zero] if %exists
  } : !tile.view<f32, 3, ${page_size}> -> tensor<64xf32>
  %start = tile.splat %first : tensor<64x64xf32>
  %scores = tile.dot %queries, %tile, %start {transpose_b} : tensor<64x64x${element}>, tensor<64x64x${element}> -> tensor<64x64xf32>
  %wide = tile.broadcast %row : tensor<64xf32> -> tensor<64x64xf32>
  %sum = arith.addf %scores, %wide : tensor<64x64xf32>
  tile.store %sum, %out rows(%r) {
    %exists = arith.cmpi slt, %r, %window : i32
    tile.at [%sequence, %r, %zero] if %exists
  } : tensor<64x64xf32>, !tile.view<f32, 3, ${page_size}>
  return
}
)";

TEST(Pages, CompileOnEveryArchitecture) {
  NSA_REQUIRE_NVRTC();
  TemplateFolder folder;
  folder.copyFrom(NSA_TEST_TEMPLATES);
  folder.write("tile/paged_rows.mlir", kPagedRows);
  for (const char *architecture : {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"})
    for (const char *dtype : {"bf16", "fp32"})
      for (const char *pageSize : {"0", "1", "5", "64"}) {
        SCOPED_TRACE(std::string(architecture) + " " + dtype + " page " + pageSize);
        CompileCall call;
        call.target = architecture;
        call.templateDir = folder.path();
        call.templateName = "paged_rows";
        call.fixed["dtype"] = dtype;
        call.fixed["page_size"] = pageSize;
        call.config = {{"warps", "4"}};
        auto compiled = call.compile();
        ASSERT_TRUE(compiled) << compiled.status().toString();
        auto manifest = Manifest::parse(compiled->manifest);
        ASSERT_TRUE(manifest) << manifest.status().toString();
        ASSERT_EQ(manifest->params.size(), 5u);
        EXPECT_EQ(manifest->params[0].pageRows, std::atoi(pageSize));
        EXPECT_EQ(manifest->slotCount(), 4 * (manifest->params[0].isPaged() ? 7 : 5) + 1);
        auto opcodes = countOpcodes(compiled->bytes);
        EXPECT_GT(opcodes[kLdgsts], 0);
        EXPECT_EQ(opcodes[kLdl], 0);
        EXPECT_EQ(opcodes[kStl], 0);
      }
}

} // namespace
