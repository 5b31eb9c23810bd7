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
kernel paged_rows serves window
fixed   dtype, qk_dim, v_dim, group, packed, page_size, many_queries
choice  warps = 1 | 4
grid    1, 1, sequence = batch
threads 32 * warps
axis    row = 64, key = 64, d = qk_dim
tensor  (k, v)[entry, time, head; d] paged(page_size)
tensor  lse[entry, time, head]: f32 paged(page_size), out[entry, time, head; value: 64]: f32 paged(page_size)
scalar  window: i32

let first   = load lse[sequence, window, 0]
let query   = iota(row) below window
let queries = load v[sequence, query, 0]
let time    = window - iota(key)
let keys    = k.present ? k : v
let tile    = load keys[sequence, time, 0 if time >= 0]
let scores  = dot(queries, tile) over d + first
store out[sequence, query, 0; iota(key)] = scores + load lse[sequence, query, 0]
)";

TEST(Pages, CompileOnEveryArchitecture) {
  NSA_REQUIRE_NVRTC();
  TemplateFolder folder;
  folder.copyFrom(NSA_TEST_TEMPLATES);
  folder.write("tile/paged_rows.tile", kPagedRows);
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
