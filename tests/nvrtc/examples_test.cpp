// The programs of docs/examples/programs, from text to cubin: the cheapest configurations for usual sizes keep
// everything in registers, and products run on tensor cores where the elements have 16 bits.
#include "tests/harness/scratch.h"
#include "tests/nvrtc/nvrtc_expected.h"
#include "tests/nvrtc/sass.h"
#include "tests/unit/compiler/compile_call.h"

#include <gtest/gtest.h>

using namespace nsa;
using namespace nsa::test;

namespace {

struct Example {
  const char *program;
  std::map<std::string, std::string> fixed;
  bool hasProducts;
};

const Example kExamples[] = {
    {"softmax", {{"columns", "200"}}, false},
    {"softmax", {{"columns", "4096"}}, false},
    {"rms_norm", {{"columns", "128"}}, false},
    {"rms_norm", {{"columns", "8192"}}, false},
    {"gemm", {{"columns", "4096"}, {"depth", "4096"}}, true},
    {"alibi", {{"width", "128"}}, true},
    {"soft_cap", {{"width", "128"}, {"group", "8"}}, true},
};

TEST(Examples, SpillNothing) {
  NSA_REQUIRE_NVRTC();
  for (const char *architecture : {"sm_80", "sm_90a"})
    for (const char *dtype : {"bf16", "fp32"})
      for (const Example &example : kExamples) {
        SCOPED_TRACE(std::string(architecture) + " " + example.program + " " + dtype);
        CompileCall call;
        call.target = architecture;
        call.op = example.program;
        call.programText = readFile(std::string(NSA_TEST_EXAMPLES) + "/" + example.program + ".tile");
        call.fixed = example.fixed;
        call.fixed.emplace("dtype", dtype);
        const auto compiled = call.compile();
        ASSERT_TRUE(compiled) << compiled.status().toString();
        const auto manifest = Manifest::parse(compiled->manifest);
        ASSERT_TRUE(manifest) << manifest.status().toString();
        std::printf("%s %s %s: %s, registers=%s spill_bytes=%s shared=%lld\n", architecture, example.program, dtype,
                    formatValues(manifest->config).c_str(), manifest->evidence.at("registers").c_str(),
                    manifest->evidence.at("spill_bytes").c_str(), static_cast<long long>(manifest->sharedBytes));
        EXPECT_EQ(manifest->evidence.at("spill_bytes"), "0");
        auto opcodes = countOpcodes(compiled->bytes);
        // Floats are multiplied without tensor cores, as their precision asks for.
        for (const uint32_t present : {kHmma, kLdsm})
          EXPECT_EQ(opcodes[present] > 0, example.hasProducts && std::string(dtype) == "bf16") << std::hex << present;
        EXPECT_EQ(opcodes[kLdgsts] > 0, example.hasProducts) << "loads run ahead of the products";
        if (!example.hasProducts)
          for (const uint32_t access : {kLdg, kStg})
            EXPECT_GT(opcodes[access | kWide], 0) << "rows are moved 16 bytes at a time: " << std::hex << access;
        for (const uint32_t absent : {kLdl, kStl})
          EXPECT_EQ(opcodes[absent], 0) << std::hex << absent;
      }
}

} // namespace
