// The kernels of nsa_bench_micro: each compiles for Hopper without spills, and what it times is in its machine code.
// Without this test, a product whose result is not used, or one that the assembler waits for, would be measured
// unnoticed.
#include "bench/micro/micro_group.h"
#include "tests/nvrtc/nvrtc_expected.h"
#include "tests/nvrtc/sass.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace nsa;
using namespace nsa::test;

namespace {

enum HopperOpcode : uint32_t {
  kSharedProduct = 0x9f0,   // HGMMA, both operands in shared memory
  kRegisterProduct = 0xdf0, // HGMMA, A in registers
  kProductFence = 0x9c5,    // WARPGROUP.ARRIVE and .DEPBAR
  kTensorLoad = 0x5b4,      // UTMALDG
  kTensorMulticast = 0x3b4,
  kBulkCopy = 0x3ba, // UBLKCP
  kBulkReduce = 0x3bb,
  kReduce = 0x9a6, // REDG
  kStore = 0x986,
  kExponent = 0x308, // MUFU
  kClusterArrive = 0x9c7,
  kClusterWait = 0xdc7,
  kClusterLoad = 0x980,
  kLaunchDependents = 0x82d,
  kWaitForPredecessors = 0x82e,
};

int constantOf(const bench::MicroSource &source, const std::string &name) {
  for (const auto &[constant, value] : source.constants)
    if (constant == name)
      return value;
  ADD_FAILURE() << source.name() << " has no " << name;
  return 0;
}

// What must be there at least so many times.
std::map<uint32_t, int> expectedOpcodes(const bench::MicroSource &source) {
  if (source.file == "tma_ring.cu")
    return {{constantOf(source, "kCluster") > 1 ? kTensorMulticast : kTensorLoad, 1}};
  if (source.file == "box_layout.cu")
    return {{kTensorLoad, 1}};
  if (source.file == "wgmma_rate.cu")
    return {{constantOf(source, "kInRegisters") ? kRegisterProduct : kSharedProduct, constantOf(source, "kSteps")}};
  if (source.file == "exponent_rate.cu") {
    std::map<uint32_t, int> expected{{kExponent, constantOf(source, "kExponents")}};
    if (constantOf(source, "kProducts")) {
      expected[kSharedProduct] = 8;
      expected[kRegisterProduct] = 8;
    }
    return expected;
  }
  if (source.file == "mma_rate.cu")
    return {{kHmma, constantOf(source, "kChains")}};
  if (source.file == "cluster_latency.cu")
    return {{kClusterArrive, 1}, {kClusterWait, 1}, {kBulkCopy, 2}, {kClusterLoad, constantOf(source, "kCluster")}};
  if (source.file == "spin.cu")
    return {{kLaunchDependents, 1}, {kWaitForPredecessors, 1}};
  if (source.file == "partial_store.cu") {
    constexpr uint32_t kModes[] = {kStore, kBulkCopy, kBulkReduce, kBulkReduce, kReduce};
    return {{kModes[constantOf(source, "kMode")], 1}};
  }
  ADD_FAILURE() << "what does " << source.file << " time?";
  return {};
}

TEST(MicroKernels, HoldWhatTheyTime) {
  NSA_REQUIRE_NVRTC();
  auto nvrtc = Nvrtc::open({});
  std::vector<bench::MicroSource> sources;
  for (const bench::MicroGroup &group : bench::kMicroGroups)
    for (const bench::MicroJob &job : group.jobs())
      if (std::find(sources.begin(), sources.end(), job.source) == sources.end())
        sources.push_back(job.source);
  EXPECT_GE(sources.size(), 30u);
  for (const bench::MicroSource &source : sources) {
    SCOPED_TRACE(source.name());
    auto text = bench::microText(source, NSA_TEST_MICRO_KERNELS);
    ASSERT_TRUE(text) << text.status().toString();
    auto compiled = (*nvrtc)->compile(*text, source.name(), "sm_90a", Nvrtc::Output::kCubin);
    ASSERT_TRUE(compiled) << compiled.status().toString();
    EXPECT_FALSE(compiled->entry.empty());
    auto counts = countOpcodes(std::string_view(compiled->bytes.data(), compiled->bytes.size()));
    for (const auto &[opcode, least] : expectedOpcodes(source))
      EXPECT_GE(counts[opcode], least) << std::hex << opcode;
    EXPECT_EQ(counts[kLdl] + counts[kStl], 0) << "registers in memory";
    // One product waits for the other where the assembler thinks that registers are touched between them: two fences
    // each.
    if (const int products = counts[kSharedProduct] + counts[kRegisterProduct])
      EXPECT_LT(counts[kProductFence], products + 3);
  }
}

TEST(MicroKernels, AMissingFileIsNamed) {
  auto text = bench::microText({"none.cu", {}}, NSA_TEST_MICRO_KERNELS);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.status().code(), ErrorCode::kIoError);
  EXPECT_NE(text.status().toString().find("none.cu cannot be read"), std::string::npos);
}

} // namespace
