// The GPU end of the compiler through its C surface: stages, manifests, digests, hand-scheduled templates, and what
// NVRTC refuses. Compiles only; no GPU is needed.
#include "tests/harness/template_folder.h"
#include "tests/nvrtc/nvrtc_expected.h"
#include "tests/unit/compiler/compile_call.h"

#include <gtest/gtest.h>

using namespace nsa;
using namespace nsa::test;

namespace {

CompileCall gpuCall(const char *target = "sm_90a") {
  CompileCall call;
  call.target = target;
  call.templateName = "attention";
  return call;
}

TEST(CompileGpu, BinaryIsACubinWithACompleteManifest) {
  NSA_REQUIRE_NVRTC();
  auto compiled = gpuCall().compile();
  ASSERT_TRUE(compiled) << compiled.status().toString();
  EXPECT_EQ(compiled->bytes.substr(0, 4), "\x7f"
                                          "ELF");
  auto manifest = Manifest::parse(compiled->manifest);
  ASSERT_TRUE(manifest) << manifest.status().toString();
  EXPECT_EQ(manifest->entry, "attention");
  EXPECT_NE(compiled->bytes.find("attention"), std::string::npos);
  EXPECT_EQ(manifest->target, "sm_90a");
  EXPECT_GT(manifest->sharedBytes, 0);
  EXPECT_EQ(manifest->params.size(), 12u);
  EXPECT_EQ(manifest->evidence["content"].size(), 64u);
  for (const char *stage : {"render=", "passes=", "emit=", "nvrtc="})
    EXPECT_NE(compiled->timings.find(stage), std::string::npos) << compiled->timings;
}

// Heads of 256 have more accumulators than a thread has registers, and shared memory admits one block of them.
TEST(CompileGpu, AKernelThatSpillsTakesTheRegistersThatItsBlocksLeave) {
  NSA_REQUIRE_NVRTC();
  CompileCall call = gpuCall("sm_80");
  call.op = call.templateName = "attention_dkv";
  call.fixed = {{"dtype", "bf16"}, {"group", "1"},      {"packed", "0"},     {"qk_dim", "256"},
                {"v_dim", "256"},  {"cmp_block", "32"}, {"cmp_stride", "16"}};
  call.config = {{"key_tile", "64"}, {"pair_tile", "16"}, {"stages", "3"}, {"warps", "4"}};
  auto compiled = call.compile();
  ASSERT_TRUE(compiled) << compiled.status().toString();
  std::map<std::string, std::string> evidence = Manifest::parse(compiled->manifest)->evidence;
  EXPECT_EQ(evidence["resident_blocks"], "1");
  EXPECT_GE(std::stoi(evidence["registers"]), 248) << "ptxas alone takes 32, and spills 22 KB";
  EXPECT_LT(std::stoi(evidence["spill_bytes"]), 4096);
  call.fixed["qk_dim"] = call.fixed["v_dim"] = "64";
  compiled = call.compile();
  ASSERT_TRUE(compiled) << compiled.status().toString();
  evidence = Manifest::parse(compiled->manifest)->evidence;
  EXPECT_EQ(evidence["spill_bytes"], "0");
  EXPECT_FALSE(evidence.contains("resident_blocks"));
}

TEST(CompileGpu, BlocksThatShareAMultiprocessorShareItsRegisters) {
  NSA_REQUIRE_NVRTC();
  CompileCall call = gpuCall("sm_90a");
  call.op = call.templateName = "sel_dq_slots";
  call.fixed = {{"dtype", "fp16"}, {"group", "4"},      {"packed", "1"},    {"qk_dim", "128"},
                {"v_dim", "128"},  {"sel_block", "60"}, {"sel_count", "16"}};
  std::map<std::string, Manifest> manifests;
  for (const char *blocks : {"0", "3"}) {
    call.config = {{"pair_tile", "64"}, {"stages", "1"}, {"warps", "4"}, {"resident_blocks", blocks}};
    auto compiled = call.compile();
    ASSERT_TRUE(compiled) << compiled.status().toString();
    manifests[blocks] = *Manifest::parse(compiled->manifest);
  }
  Manifest &some = manifests["0"], &three = manifests["3"];
  EXPECT_GT(std::stoi(some.evidence["registers"]), 168);
  EXPECT_FALSE(some.evidence.contains("resident_blocks"));
  EXPECT_LE(std::stoi(three.evidence["registers"]), 168);
  EXPECT_EQ(three.evidence["resident_blocks"], "3");
  EXPECT_NE(some.evidence["content"], three.evidence["content"]);
}

TEST(CompileGpu, PtxIsText) {
  NSA_REQUIRE_NVRTC();
  CompileCall call = gpuCall("sm_80");
  call.stage = NSA_COMPILER_STAGE_PTX;
  auto compiled = call.compile();
  ASSERT_TRUE(compiled) << compiled.status().toString();
  EXPECT_NE(compiled->bytes.find(".target sm_80"), std::string::npos);
  EXPECT_NE(compiled->bytes.find("mma.sync"), std::string::npos);
  EXPECT_EQ(compiled->bytes.find('\0'), std::string::npos);
}

TEST(CompileGpu, EqualRequestsGiveEqualBytesAndDigestsFollowWhatMatters) {
  NSA_REQUIRE_NVRTC();
  auto content = [](const CompileCall::Compiled &compiled) {
    return Manifest::parse(compiled.manifest)->evidence["content"];
  };
  auto revision = [](const CompileCall::Compiled &compiled) { return Manifest::parse(compiled.manifest)->revision; };
  auto first = gpuCall().compile();
  auto again = gpuCall().compile();
  ASSERT_TRUE(first && again);
  EXPECT_TRUE(first->bytes == again->bytes);
  EXPECT_EQ(first->manifest, again->manifest);

  auto other = gpuCall("sm_80").compile();
  ASSERT_TRUE(other);
  EXPECT_NE(content(*other), content(*first)) << "another architecture is another binary";
  EXPECT_EQ(revision(*other), revision(*first)) << "but the same sources";

  TemplateFolder folder;
  folder.copyFrom(NSA_TEST_TEMPLATES);
  CompileCall call = gpuCall();
  call.templateDir = folder.path();
  auto copied = call.compile();
  ASSERT_TRUE(copied);
  EXPECT_EQ(copied->manifest, first->manifest) << "a folder's name is no part of anything";
  const std::string types = folder.read("device/types.cuh");
  folder.write("device/types.cuh", types + "// a comment\n");
  auto edited = call.compile();
  ASSERT_TRUE(edited) << edited.status().toString();
  EXPECT_NE(revision(*edited), revision(*first)) << "a device header is part of the revision";

  folder.write("device/types.cuh", types);
  folder.replace("tile/attention.tile", "block = ceildiv(max_seqlen_q * group, query_tile)",
                 "block = ceildiv(group * max_seqlen_q, query_tile)");
  auto launched = call.compile();
  ASSERT_TRUE(launched) << launched.status().toString();
  EXPECT_TRUE(launched->bytes == first->bytes);
  EXPECT_NE(content(*launched), content(*first)) << "the same text under another grid is another kernel";
}

// A small template of the second kind, with everything such a template declares.
const std::string kCopy = "// Copies rows, for a test.\n"
                          "//! kernel row_copy serves window\n"
                          "//! targets gpu\n"
                          "//! fixed dtype, qk_dim, v_dim, group, packed, page_size, many_queries\n"
                          "//! choice warps = 1 | 2\n"
                          "//! param view q dtype 3\n"
                          "//! param view out dtype 3\n"
                          "//! param i32 window\n"
                          "//! grid max_seqlen_q * group, kv_heads, batch\n"
                          "//! threads 32 * warps\n"
                          "//! shared 16 * warps\n"
                          "\n"
                          "#include \"types.cuh\"\n"
                          "\n"
                          "struct Arguments { nsa::uint64 slots[11]; };\n"
                          "extern \"C\" __global__ void row_copy(const __grid_constant__ Arguments arguments) {\n"
                          "  constexpr int dim = ${qk_dim};\n"
                          "  reinterpret_cast<int *>(arguments.slots[5])[threadIdx.x] = dim;\n"
                          "}\n";

CompileCall copyCall(TemplateFolder &folder) {
  folder.copyFrom(NSA_TEST_TEMPLATES);
  folder.write("cuda/row_copy.cu", kCopy);
  CompileCall call = gpuCall();
  call.templateDir = folder.path();
  call.templateName = "row_copy";
  return call;
}

TEST(HandScheduled, SharesHeaderRendererAndManifest) {
  NSA_REQUIRE_NVRTC();
  TemplateFolder folder;
  CompileCall call = copyCall(folder);
  auto compiled = call.compile();
  ASSERT_TRUE(compiled) << compiled.status().toString();
  auto manifest = Manifest::parse(compiled->manifest);
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->entry, "row_copy");
  EXPECT_EQ(manifest->threads, 32);
  EXPECT_EQ(manifest->sharedBytes, 16);
  ASSERT_EQ(manifest->params.size(), 3u);
  EXPECT_EQ(manifest->params[0].dtype, "bf16");
  EXPECT_EQ(manifest->slotCount(), 11);
  EXPECT_EQ(manifest->grid[0].text(), "max_seqlen_q * 8");

  call.stage = NSA_COMPILER_STAGE_TILE;
  auto tile = call.compile();
  ASSERT_FALSE(tile);
  EXPECT_EQ(tile.status().error().field, "stage");
  call.stage = NSA_COMPILER_STAGE_BINARY;
  call.target = "cpu";
  auto cpu = call.compile();
  ASSERT_FALSE(cpu);
  EXPECT_NE(cpu.status().error().rule.find("does not serve operator window on target cpu"), std::string::npos);
}

TEST(HandScheduled, NvrtcsRefusalIsToldWithItsFirstLines) {
  NSA_REQUIRE_NVRTC();
  TemplateFolder folder;
  CompileCall call = copyCall(folder);
  folder.replace("cuda/row_copy.cu", "constexpr int dim = ${qk_dim}", "constexpr int dim = missing_name");
  auto compiled = call.compile();
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.status().code(), ErrorCode::kCompileFailed);
  EXPECT_NE(compiled.status().error().rule.find("missing_name"), std::string::npos) << compiled.status().toString();
  EXPECT_NE(compiled.status().error().rule.find("sm_90a"), std::string::npos);
}

TEST(HandScheduled, TheKernelBearsTheTemplatesName) {
  NSA_REQUIRE_NVRTC();
  TemplateFolder folder;
  CompileCall call = copyCall(folder);
  folder.replace("cuda/row_copy.cu", "void row_copy", "void copy_rows");
  auto compiled = call.compile();
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.status().code(), ErrorCode::kCompileFailed);
  EXPECT_NE(compiled.status().error().rule.find("copy_rows"), std::string::npos) << compiled.status().toString();
}

TEST(HandScheduled, SharedMemoryBeyondTheTargetIsUnsupported) {
  TemplateFolder folder;
  CompileCall call = copyCall(folder);
  folder.replace("cuda/row_copy.cu", "//! shared 16 * warps", "//! shared 200 * 1024 * warps");
  call.target = "sm_86";
  auto compiled = call.compile();
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.status().code(), ErrorCode::kUnsupported);
  EXPECT_NE(compiled.status().error().rule.find("204800"), std::string::npos) << compiled.status().toString();
  EXPECT_NE(compiled.status().error().rule.find("101376"), std::string::npos);
}

TEST(Nvrtc, TheMajorFollowsTheDriver) {
  auto first = [](int32_t driver) { return Nvrtc::candidates({"", driver}).front(); };
  EXPECT_EQ(first(0), "libnvrtc.so.13");
  EXPECT_EQ(first(12040), "libnvrtc.so.12");
  EXPECT_EQ(first(13000), "libnvrtc.so.13");
  EXPECT_EQ(first(14000), "libnvrtc.so.13") << "the newest that is known";
  for (const std::string &path : Nvrtc::candidates({"", 12040}))
    EXPECT_EQ(path.find(".so.13"), std::string::npos) << "a 12.x driver cannot load what NVRTC 13 makes";
  EXPECT_EQ(Nvrtc::candidates({"/a/libnvrtc.so", 12040}), std::vector<std::string>{"/a/libnvrtc.so"});
}

TEST(Nvrtc, ANewerMajorThanTheDriversIsRefused) {
  NSA_REQUIRE_NVRTC();
  CompileCall call = gpuCall();
  call.driverVersion = 12000; // the oldest that is served
  for (const std::string &path : Nvrtc::candidates({})) {
    auto nvrtc = Nvrtc::open({path, 0});
    if (!nvrtc || !(*nvrtc)->version().starts_with("13."))
      continue;
    call.nvrtcPath = path;
    auto compiled = call.compile();
    ASSERT_FALSE(compiled);
    EXPECT_EQ(compiled.status().code(), ErrorCode::kUnavailable);
    EXPECT_NE(compiled.status().error().message.find("the driver 12.0 cannot load"), std::string::npos)
        << compiled.status().toString();
    return;
  }
  GTEST_SKIP() << "no NVRTC 13 here";
}

TEST(Nvrtc, ReadsPtxasReport) {
  auto resources =
      parsePtxasReport("ptxas info    : 0 bytes gmem\n"
                       "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
                       "ptxas info    : Function properties for k\n"
                       "ptxas         .     8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
                       "ptxas info    : Used 168 registers, used 1 barriers, 128 bytes smem, 400 bytes cmem[0]\n"
                       "ptxas info    : Compile time = 2.770 ms\n");
  EXPECT_EQ(formatValues(resources), "registers=168 spill_bytes=28 stack_bytes=8 static_shared=128");
  EXPECT_TRUE(parsePtxasReport("").empty());
}

} // namespace
