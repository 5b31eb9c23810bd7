// The structs that programs read say what the JSON texts say, field by field.
#include "runtime/engine/graph/plan_core.h"
#include "tests/unit/runtime/c_api_fixture.h"

#include <nlohmann/json.hpp>

namespace nsa::test::c_api {
namespace {

using Json = nlohmann::json;

Json jsonOf(nsa_source source) { return planSourceName(static_cast<PlanSource>(source)); }
Json jsonOf(int32_t flag) { return flag == 1; }
template <typename Value> Json jsonOf(Value value) { return value; }

void expectSame(const Plan &plan) {
  nsa_plan_info info = NSA_INIT(nsa_plan_info);
  nsa_error error;
  ASSERT_EQ(nsa_plan_get_info(plan.handle, &info, &error), NSA_OK) << error.message;
  const Json text = Json::parse(nsa_plan_describe(plan.handle));
#define NSA_PLAN_INFO(type, name, place) EXPECT_EQ(jsonOf(info.name), text.at(Json::json_pointer(place))) << #name;
#include "runtime/model/info_fields.def"
}

TEST_F(CApi, APlansInfoIsThatOfItsText) {
  Call call(NSA_LAYOUT_DENSE);
  store(call, {.scratchBytes = 64}, countingCode());
  Engine engine(cache);
  Plan stored(engine, call), again(engine, call);
  expectSame(stored);
  expectSame(again);
  nsa_plan_info info = NSA_INIT(nsa_plan_info);
  ASSERT_EQ(nsa_plan_get_info(stored.handle, &info, nullptr), NSA_OK);
  EXPECT_EQ(info.source, NSA_FROM_DATABASE);
  EXPECT_EQ(info.workspace_bytes, stored.workspaceBytes);
  EXPECT_GT(info.load_ms, 0);
  ASSERT_EQ(nsa_plan_get_info(again.handle, &info, nullptr), NSA_OK);
  EXPECT_EQ(info.source, NSA_FROM_MEMORY);
  EXPECT_EQ(info.load_ms, 0);
  nsa_error error;
  EXPECT_EQ(nsa_plan_get_info(nullptr, &info, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "plan");
  EXPECT_EQ(nsa_plan_get_info(stored.handle, nullptr, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "info");
}

TEST_F(CApi, ADevicesInfoIsThatOfItsText) {
  Engine engine(cache);
  nsa_device_info info = NSA_INIT(nsa_device_info);
  nsa_error error;
  ASSERT_EQ(nsa_engine_get_device(engine.handle, &info, &error), NSA_OK) << error.message;
  char *text = nullptr;
  ASSERT_EQ(nsa_engine_describe(engine.handle, &text, &error), NSA_OK) << error.message;
  Json device = Json::parse(text)["device"];
  nsa_free(text);
#define NSA_DEVICE_TEXT(name)                                                                                          \
  EXPECT_EQ(info.name, device.value(#name, std::string())) << #name;                                                   \
  device.erase(#name);
#define NSA_DEVICE_NUMBER(name)                                                                                        \
  EXPECT_EQ(std::to_string(info.name), device.value(#name, std::string("0"))) << #name;                                \
  device.erase(#name);
#include "runtime/model/info_fields.def"
  EXPECT_TRUE(device.empty()) << "not in nsa_device_info: " << device.dump();
  EXPECT_STREQ(info.kind, "cpu");
  EXPECT_EQ(info.threads, 2);
  EXPECT_EQ(nsa_engine_get_device(nullptr, &info, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "engine");
  EXPECT_EQ(nsa_engine_get_device(engine.handle, nullptr, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "info");
}

} // namespace
} // namespace nsa::test::c_api
