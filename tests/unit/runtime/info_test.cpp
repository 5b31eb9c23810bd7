// The structs that programs read say what the JSON texts say, field by field.
#include "runtime/engine/report/describe.h"
#include "tests/unit/runtime/c_api_fixture.h"

#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

namespace nsa::test::c_api {
namespace {

using Json = nlohmann::json;

// What the text has of a field of this type.
template <typename Type, typename Value> Json jsonOf(const Value &value) {
  if constexpr (std::is_same_v<Type, bool>)
    return value == 1;
  else if constexpr (std::is_same_v<Type, PlanSource>)
    return planSourceName(static_cast<PlanSource>(value));
  else if constexpr (std::is_same_v<Type, FallbackStep>)
    return fallbackStepName(static_cast<FallbackStep>(value));
  else if constexpr (std::is_same_v<Type, std::string>)
    return std::string(value);
  else
    return value;
}

void expectSame(const Plan &plan) {
  nsa_plan_info info = NSA_INIT(nsa_plan_info);
  nsa_error error;
  ASSERT_EQ(nsa_plan_get_info(plan.handle, &info, &error), NSA_OK) << error.message;
  const Json text = Json::parse(nsa_plan_describe(plan.handle));
#define NSA_PLAN_INFO(type, name, place)                                                                               \
  EXPECT_EQ(jsonOf<type>(info.name), text.at(Json::json_pointer(place))) << #name;
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

TEST_F(CApi, APlansLaunchesAreThoseOfItsText) {
  Call call(NSA_LAYOUT_DENSE);
  store(call, {.scratchBytes = 64}, countingCode());
  Engine engine(cache);
  Plan plan(engine, call);
  ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
  nsa_launch launches[3];
  size_t count = 0;
  nsa_error error;
  ASSERT_EQ(nsa_plan_launches(plan.handle, launches, 3, &count, &error), NSA_OK) << error.message;
  const Json text = Json::parse(nsa_plan_describe(plan.handle));
  ASSERT_EQ(count, 1u);
  ASSERT_EQ(text["launches"].size(), count);
  const Json &told = text["launches"][0];
  const nsa_launch &launch = launches[0];
#define NSA_LAUNCH_INFO(type, name, place)                                                                             \
  if (*(place))                                                                                                        \
    EXPECT_EQ(jsonOf<type>(launch.name), told.at(Json::json_pointer(place))) << #name;
#include "runtime/model/info_fields.def"
  EXPECT_EQ(launch.problem, text["problem"]);
  EXPECT_EQ(launch.step, NSA_STEP_EXACT);
  EXPECT_EQ(launch.scratch_bytes, 64);
  EXPECT_EQ(nsa_plan_launches(nullptr, launches, 3, &count, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "plan");
  EXPECT_EQ(nsa_plan_launches(plan.handle, nullptr, 1, &count, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "launches");
  EXPECT_EQ(nsa_plan_launches_sized(plan.handle, launches, 8, 1, &count, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "launch_bytes");
}

// What would serve, as a struct and as a text, and what then happens.
TEST_F(CApi, ChoicesAreThoseOfTheExplanation) {
  Call own(NSA_LAYOUT_DENSE), near(NSA_LAYOUT_DENSE), missing(NSA_LAYOUT_DENSE);
  near.maxima.max_seqlen_k = 200;
  missing.spec.qk_dim = 16;
  store(own, {}, countingCode());
  Engine engine(cache);
  const struct {
    const Call &call;
    nsa_action action;
    nsa_reason reason;
    nsa_step step;
    nsa_status status;
  } rows[] = {{own, NSA_WOULD_LOAD, NSA_AS_MEASURED, NSA_STEP_EXACT, NSA_OK},
              {near, NSA_WOULD_LOAD, NSA_AS_OTHER, NSA_STEP_NEAREST, NSA_OK},
              {missing, NSA_WOULD_FAIL, NSA_AS_MISSING, NSA_STEP_EXACT, NSA_CACHE_MISS}};
  for (const auto &row : rows) {
    nsa_choice choice = {};
    size_t count = 0;
    nsa_error error;
    ASSERT_EQ(nsa_explain_choices(engine.handle, &row.call.spec, &row.call.maxima, &choice, 1, &count, &error), NSA_OK)
        << error.message;
    ASSERT_EQ(count, 1u);
    char *json = nullptr;
    ASSERT_EQ(nsa_explain(engine.handle, &row.call.spec, &row.call.maxima, &json, &error), NSA_OK);
    const Json text = Json::parse(json);
    nsa_free(json);
    EXPECT_EQ(choice.action, row.action) << text;
    EXPECT_EQ(choice.reason, row.reason) << text;
    EXPECT_EQ(choice.step, row.step) << text;
    EXPECT_EQ(choice.status, row.status) << text;
    EXPECT_EQ(choice.status != NSA_OK, text["fails"]);
#define NSA_CHOICE_INFO(type, name, place)                                                                             \
  if (*(place) && text.contains(Json::json_pointer(place)))                                                            \
    EXPECT_EQ(jsonOf<type>(choice.name), text.at(Json::json_pointer(place))) << #name;
#include "runtime/model/info_fields.def"
    EXPECT_EQ(text.contains("variant"), row.status == NSA_OK);
    EXPECT_EQ(*choice.template_name != '\0', row.status == NSA_OK);
    const Plan plan(engine, row.call);
    EXPECT_EQ(plan.status, row.status);
    if (row.status != NSA_OK)
      continue;
    nsa_launch launch = {};
    ASSERT_EQ(nsa_plan_launches(plan.handle, &launch, 1, &count, &error), NSA_OK);
    EXPECT_STREQ(launch.template_name, choice.template_name);
    EXPECT_STREQ(launch.config, choice.config);
    EXPECT_EQ(launch.source, choice.source);
    EXPECT_EQ(launch.step, choice.step);
    EXPECT_EQ(launch.tuned, choice.tuned);
    EXPECT_EQ(nsa_explain_choices(engine.handle, &row.call.spec, &row.call.maxima, &choice, 1, &count, &error), NSA_OK);
    EXPECT_EQ(choice.in_memory, 1);
    EXPECT_EQ(choice.source, NSA_FROM_MEMORY);
  }
  nsa_error error;
  size_t count = 0;
  EXPECT_EQ(nsa_explain_choices(nullptr, &own.spec, &own.maxima, nullptr, 0, &count, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "engine");
  EXPECT_EQ(nsa_explain_choices(engine.handle, &own.spec, &own.maxima, nullptr, 0, &count, &error), NSA_OK);
  EXPECT_EQ(count, 1u);
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
