// Drawn programs of the tile language, from their texts to cubins of two architectures. nsa_gpu_attention_test runs
// such programs where there is a GPU.
#include "tests/harness/seed.h"
#include "tests/harness/tile/drawn_program.h"
#include "tests/nvrtc/nvrtc_expected.h"
#include "tests/unit/compiler/compile_call.h"

#include <gtest/gtest.h>

using namespace nsa;
using namespace nsa::test;

namespace {

constexpr int kFull = 20, kDaily = 8;

TEST(DrawnProgramsOfAGpu, AreCompiled) {
  NSA_REQUIRE_NVRTC();
  static constexpr const char *kTypes[] = {"fp32", "bf16", "fp32", "fp16"};
  const uint64_t seed = freshSeed();
  for (int number = 0; number < drawnCases(kFull, kDaily); ++number) {
    const tile::DrawnProgram program =
        tile::drawProgram(seed + static_cast<uint64_t>(number), kTypes[number % 4], /*isGpu=*/true);
    SCOPED_TRACE(program.text);
    CompileCall call;
    call.target = number % 2 == 0 ? "sm_90a" : "sm_80";
    call.op = "drawn";
    call.fixed = program.call.values;
    call.programText = program.text;
    const auto compiled = call.compile();
    EXPECT_TRUE(compiled) << compiled.status().toString();
  }
}

} // namespace
