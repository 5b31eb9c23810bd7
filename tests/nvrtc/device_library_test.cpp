// Every header of the device library stands alone on every architecture; fp32 stays fp32; and the counter of opcodes,
// by which the compile matrix sees what kernels are made of, counts.
#include "compiler/driver/DeviceSource.h"
#include "tests/nvrtc/nvrtc_expected.h"
#include "tests/nvrtc/sass.h"
#include "tests/unit/compiler/compile_call.h"

#include <gtest/gtest.h>

using namespace nsa;
using namespace nsa::test;

namespace {

constexpr const char *kArchitectures[] = {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"};

TEST(DeviceLibrary, EachHeaderCompilesAlone) {
  NSA_REQUIRE_NVRTC();
  auto nvrtc = Nvrtc::open({});
  auto files = TemplateFiles::read(NSA_TEST_TEMPLATES);
  ASSERT_TRUE(files) << files.status().toString();
  int headers = 0;
  for (const TemplateFile &file : files->files()) {
    if (!file.path.starts_with("device/"))
      continue;
    ++headers;
    std::string source = "#include \"" + file.path.substr(7) + "\"\nextern \"C\" __global__ void empty() {}\n";
    auto device = inlineDeviceLibrary(source, "alone.cu", *files);
    ASSERT_TRUE(device) << device.status().toString();
    for (const char *architecture : kArchitectures) {
      auto compiled = (*nvrtc)->compile(device->text, file.path, architecture, Nvrtc::Output::kCubin);
      EXPECT_TRUE(compiled) << compiled.status().toString();
    }
  }
  EXPECT_GE(headers, 10);
}

TEST(DefaultKernel, KeepsFloatInFullPrecision) {
  NSA_REQUIRE_NVRTC();
  CompileCall call;
  call.target = "sm_90a";
  call.templateName = "attention";
  call.fixed = {{"dtype", "fp32"}, {"group", "8"},  {"packed", "0"},      {"page_size", "0"},
                {"qk_dim", "64"},  {"v_dim", "64"}, {"many_queries", "1"}};
  auto compiled = call.compile();
  ASSERT_TRUE(compiled) << compiled.status().toString();
  auto opcodes = countOpcodes(compiled->bytes);
  EXPECT_EQ(opcodes[kHmma], 0) << "TF32 is a tensor core type";
  EXPECT_EQ(opcodes[kLdl], 0);
  EXPECT_EQ(opcodes[kStl], 0);
}

// The counter itself: a run-time index into an array goes through local memory.
TEST(Sass, CountsWhatIsThere) {
  NSA_REQUIRE_NVRTC();
  auto nvrtc = Nvrtc::open({});
  const char *source = R"(
extern "C" __global__ void probe(int *data) {
  int local[64];
  for (int i = 0; i < 64; ++i)
    local[data[i] % 64] = i;
  data[0] = local[data[64]];
})";
  auto compiled = (*nvrtc)->compile(source, "probe.cu", "sm_80", Nvrtc::Output::kCubin);
  ASSERT_TRUE(compiled) << compiled.status().toString();
  auto opcodes = countOpcodes(std::string_view(compiled->bytes.data(), compiled->bytes.size()));
  EXPECT_GT(opcodes[kLdl], 0);
  EXPECT_GT(opcodes[kStl], 0);
  EXPECT_EQ(opcodes[kHmma], 0);
  EXPECT_TRUE(countOpcodes("no cubin").empty());
  EXPECT_TRUE(countOpcodes(std::string_view(compiled->bytes.data(), 100)).empty());
}

} // namespace
