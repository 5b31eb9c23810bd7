// What a host without a usable driver is told, and the table from compute capability to target.
#include "runtime/cuda/device_info.h"
#include "runtime/cuda/driver.h"

#include <gtest/gtest.h>

using namespace nsa;
using namespace nsa::cuda;

namespace {

TEST(CudaDriver, AbsentLibraryIsUnavailableWithAHint) {
  Result<const Driver *> driver = Driver::open("libcuda_that_does_not_exist.so.1");
  ASSERT_FALSE(driver.isOk());
  EXPECT_EQ(driver.status().code(), ErrorCode::kUnavailable);
  EXPECT_NE(driver.status().error().message.find("no CUDA driver"), std::string::npos);
  EXPECT_NE(driver.status().error().hint.find("12.0"), std::string::npos);
}

TEST(CudaDriver, ALibraryThatIsNoDriver) {
  Result<const Driver *> driver = Driver::open("libm.so.6");
  ASSERT_FALSE(driver.isOk());
  EXPECT_EQ(driver.status().code(), ErrorCode::kUnavailable);
  EXPECT_NE(driver.status().error().message.find("is not a CUDA driver"), std::string::npos);
}

TEST(CudaDriver, FakeDriversOfEachFault) {
  const struct {
    const char *file;
    const char *message;
  } rows[] = {{NSA_OLD_DRIVER, "supports CUDA 11.8, needed is 12.0"},
              {NSA_STUB_DRIVER, "stub"},
              {NSA_DEVICELESS_DRIVER, "finds no GPU"}};
  for (const auto &row : rows) {
    Result<const Driver *> driver = Driver::open(row.file);
    ASSERT_FALSE(driver.isOk()) << row.file;
    EXPECT_EQ(driver.status().code(), ErrorCode::kUnavailable);
    EXPECT_NE(driver.status().error().message.find(row.message), std::string::npos) << driver.status().error().message;
    EXPECT_FALSE(driver.status().error().hint.empty());
  }
}

TEST(CudaDriver, TargetsOfComputeCapabilities) {
  const struct {
    int major, minor;
    const char *target;
  } rows[] = {{8, 0, "sm_80"},    {8, 6, "sm_86"},    {8, 7, "sm_86"},    {8, 9, "sm_89"},   {9, 0, "sm_90a"},
              {10, 0, "sm_100a"}, {10, 3, "sm_100a"}, {12, 0, "sm_120a"}, {12, 1, "sm_120a"}};
  for (const auto &row : rows) {
    Result<std::string> target = targetOf(row.major, row.minor);
    ASSERT_TRUE(target.isOk());
    EXPECT_EQ(*target, row.target);
  }
  for (int major : {5, 7, 11, 13}) {
    Result<std::string> target = targetOf(major, 5);
    ASSERT_FALSE(target.isOk());
    EXPECT_EQ(target.status().code(), ErrorCode::kUnsupported);
    EXPECT_EQ(target.status().error().value, std::to_string(major) + ".5");
  }
}

TEST(CudaDriver, TheDeviceKeyNamesTheModelAndNothingOfTheMachine) {
  DeviceInfo info;
  info.name = "NVIDIA H200";
  info.multiprocessors = 132;
  info.l2Bytes = 62914560;
  info.bandwidthGBs = 4800;
  std::string key = info.key();
  EXPECT_EQ(key, "NVIDIA H200 sms=132 l2_bytes=62914560 bandwidth_gbs=4800");
  info.ordinal = 3;
  info.memoryBytes = 1;
  EXPECT_EQ(info.key(), key);
}

TEST(CudaDriver, VersionText) {
  EXPECT_EQ(versionText(12000), "12.0");
  EXPECT_EQ(versionText(12040), "12.4");
  EXPECT_EQ(versionText(13010), "13.1");
}

} // namespace
