// The kernels of gradients, from template to cubin: the cheapest configuration for heads of 64 runs
// on tensor cores and keeps everything in registers.
#include "tests/harness/template_folder.h"
#include "tests/nvrtc/nvrtc_expected.h"
#include "tests/nvrtc/sass.h"
#include "tests/unit/compiler/compile_call.h"

#include <gtest/gtest.h>

using namespace nsa;
using namespace nsa::test;

namespace {

struct Gradient {
  const char *program, *op;
  std::map<std::string, std::string> fixed;
};

using Fixed = std::map<std::string, std::string>;
Fixed blocksOf(const char *block, const char *stride) {
  return {{"group", "16"}, {"cmp_block", block}, {"cmp_stride", stride}};
}
Fixed withSplitDs(Fixed fixed) {
  fixed.emplace("split_ds", "1");
  return fixed;
}
Fixed compressionOf(const char *kind, const char *hidden) {
  return {{"cmp_block", "32"},
          {"cmp_stride", "16"},
          {"cmp_kind", kind},
          {"mlp_hidden", hidden},
          {"mlp_activation", "relu"}};
}
const Gradient kGradients[] = {
    {"attention_dq", "attention_dq", blocksOf("1", "1")},
    {"attention_dq", "attention_dq", blocksOf("32", "16")},
    {"attention_dq", "attention_dq", withSplitDs(blocksOf("32", "16"))},
    {"attention_dkv", "attention_dkv", blocksOf("1", "1")},
    {"attention_dkv", "attention_dkv", blocksOf("32", "16")},
    {"attention_dkv", "attention_dkv", withSplitDs(blocksOf("32", "16"))},
    {"sel_dq", "sel_dq", {{"group", "16"}, {"sel_block", "64"}, {"sel_count", "16"}}},
    {"sel_dq_slots", "sel_dq_slots", {{"group", "1"}, {"sel_block", "64"}, {"sel_count", "16"}}},
    {"sel_dkv", "sel_dkv", {{"group", "16"}, {"sel_block", "64"}, {"sel_count", "16"}}},
    {"compress_tokens_bwd", "compress_dx", compressionOf("linear", "1")},
    {"compress_tokens_bwd", "compress_dx", compressionOf("mlp", "256")},
    {"compress_hidden_bwd", "compress_dz", compressionOf("mlp", "256")},
    {"compress_weights_bwd", "compress_dw", compressionOf("linear", "1")},
    {"compress_weights_bwd", "compress_dw", compressionOf("mlp", "256")},
};

TEST(Gradients, SpillNothing) {
  NSA_REQUIRE_NVRTC();
  TemplateFolder folder;
  folder.copyFrom(NSA_TEST_TEMPLATES);
  for (const char *architecture : {"sm_80", "sm_90a"})
    for (const Gradient &gradient : kGradients) {
      SCOPED_TRACE(std::string(architecture) + " " + gradient.program + " of " + gradient.op);
      CompileCall call;
      call.target = architecture;
      call.op = gradient.op;
      call.templateDir = folder.path();
      call.templateName = gradient.program;
      call.fixed = {{"dtype", "bf16"}, {"packed", "1"}, {"qk_dim", "64"}, {"v_dim", "64"}};
      call.fixed.insert(gradient.fixed.begin(), gradient.fixed.end());
      const auto compiled = call.compile();
      ASSERT_TRUE(compiled) << compiled.status().toString();
      const auto manifest = Manifest::parse(compiled->manifest);
      ASSERT_TRUE(manifest) << manifest.status().toString();
      std::printf("%s %s of %s: %s, registers=%s spill_bytes=%s shared=%lld\n", architecture, gradient.program,
                  gradient.op, formatValues(manifest->config).c_str(), manifest->evidence.at("registers").c_str(),
                  manifest->evidence.at("spill_bytes").c_str(), static_cast<long long>(manifest->sharedBytes));
      EXPECT_EQ(manifest->evidence.at("spill_bytes"), "0");
      auto opcodes = countOpcodes(compiled->bytes);
      for (const uint32_t present : {kHmma, kLdsm, kLdgsts})
        EXPECT_GT(opcodes[present], 0) << std::hex << present;
      for (const uint32_t absent : {kLdl, kStl})
        EXPECT_EQ(opcodes[absent], 0) << std::hex << absent;
    }
}

} // namespace
