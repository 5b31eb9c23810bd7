#include "runtime/base/device_status.h"
#include "runtime/base/status.h"

#include <gtest/gtest.h>

namespace nsa {
namespace {

TEST(Status, OkIsOnePointerAndNull) {
  EXPECT_EQ(sizeof(Status), sizeof(void *));
  EXPECT_TRUE(Status::ok().isOk());
  EXPECT_EQ(Status::ok().code(), ErrorCode::kOk);
  EXPECT_EQ(Status::ok().toString(), "ok");
}

TEST(Status, InvalidNamesFieldValueRuleAndHint) {
  Status status = Status::invalid("window", "0", "must be at least 1", "the own token counts");
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(status.toString(), "invalid argument: window = 0: must be at least 1 (hint: the own token counts)");
  EXPECT_EQ(status.error().sentence(), "window = 0: must be at least 1");
  EXPECT_EQ(Status::invalid("k", "", "is missing").toString(), "invalid argument: k: is missing");
}

TEST(Status, MessageReplacesTheParts) {
  EXPECT_EQ(Status::error(ErrorCode::kIoError, "cannot read 'x'", "check the path").toString(),
            "io error: cannot read 'x' (hint: check the path)");
}

TEST(Status, CopyIsDeep) {
  Status first = Status::error(ErrorCode::kInternal, "a");
  Status second = first;
  first = Status::ok();
  EXPECT_EQ(second.error().message, "a");
  second = static_cast<const Status &>(second);
  EXPECT_EQ(second.error().message, "a");
}

TEST(Status, EveryCodeHasAName) {
  for (int code = 0; code <= 10; ++code)
    EXPECT_NE(errorCodeName(static_cast<ErrorCode>(code)), "unknown error") << code;
  EXPECT_EQ(errorCodeName(static_cast<ErrorCode>(99)), "unknown error");
}

TEST(Result, HoldsValueOrStatus) {
  Result<int> good = 3;
  ASSERT_TRUE(good);
  EXPECT_EQ(*good, 3);
  EXPECT_TRUE(good.status().isOk());
  Result<int> bad = Status::error(ErrorCode::kUnavailable, "no driver");
  EXPECT_FALSE(bad);
  EXPECT_EQ(bad.status().code(), ErrorCode::kUnavailable);
}

TEST(DeviceStatus, NamesFieldSequenceAndRule) {
  EXPECT_TRUE(deviceStatus({0, 7}).isOk());
  const std::pair<int, const char *> fields[] = {
      {1, "cu_seqlens_q"}, {2, "cu_seqlens_k"}, {3, "cu_seqlens_q"},  {4, "max_seqlen_q"},  {5, "max_seqlen_k"},
      {6, "block_list"},   {7, "k_comp"},       {8, "cache_seqlens"}, {9, "cache_seqlens"}, {10, "block_table"}};
  for (const auto &[code, field] : fields) {
    Status status = deviceStatus({code, 7});
    EXPECT_EQ(status.code(), ErrorCode::kDeviceError);
    EXPECT_EQ(status.error().field, field);
    EXPECT_EQ(status.error().value, "sequence 7");
    EXPECT_FALSE(status.error().rule.empty());
    EXPECT_FALSE(status.error().hint.empty());
  }
  EXPECT_EQ(deviceStatus({42, 0}).error().value, "42 at 0");
}

} // namespace
} // namespace nsa
