// Errors that any function may return: what a failure leaves to its thread, and pointers that must not be null.
#include "tests/unit/runtime/c_api_fixture.h"

#include <string>
#include <thread>

namespace nsa::test::c_api {
namespace {

TEST_F(CApi, EachThreadHasItsLastFailure) {
  std::thread([] {
    const nsa_error_info none = lastFailure();
    EXPECT_EQ(none.code, NSA_OK);
    for (const char *text : {none.field, none.value, none.rule, none.message, none.hint})
      EXPECT_STREQ(text, "");
  }).join();
  Engine engine(cache);
  Call call(NSA_LAYOUT_DENSE);
  call.spec.window = -3;
  const Plan plan(engine, call);
  std::thread([] { EXPECT_EQ(nsa_plan_status(nullptr, nullptr, nullptr), NSA_INVALID_ARGUMENT); }).join();
  size_t bytes = 0;
  EXPECT_EQ(nsa_plan_workspace_size(nullptr, &bytes, nullptr), NSA_INVALID_ARGUMENT);
  const Plan again(engine, call);
  engine.stats(); // succeeds, which changes nothing
  const nsa_error_info last = lastFailure();
  EXPECT_EQ(last.code, NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(last.field, again.error.field);
  EXPECT_STREQ(last.value, "-3");
  EXPECT_STREQ(last.rule, again.error.rule);
  EXPECT_STREQ(last.message, again.error.message);
  EXPECT_STREQ(last.hint, again.error.hint);

  // A text of several bytes for each letter is cut between letters.
  std::string device = "\xc3\xa4\xc3\xb6";
  while (device.size() < 300)
    device += device;
  Engine named(cache, [&](nsa_engine_options &options) { options.device = device.c_str(); });
  EXPECT_NE(std::string(lastFailure().value).find(device), std::string::npos);
  const std::string cut = named.error.value;
  EXPECT_TRUE(cut.ends_with("...")) << cut;
  EXPECT_EQ(static_cast<unsigned char>(cut[cut.size() - 4]) & 0xc0, 0x80) << "a whole letter";
}

TEST_F(CApi, NullPointersAreNamed) {
  Engine engine(cache);
  Call call(NSA_LAYOUT_DENSE);
  nsa_error error;
  nsa_plan *plan = nullptr;
  char *json = nullptr;
  size_t bytes = 0;
  nsa_stats stats = NSA_INIT(nsa_stats);
  EXPECT_EQ(nsa_engine_create(nullptr, nullptr, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "engine");
  EXPECT_EQ(nsa_plan_create_with(nullptr, &call.spec, &call.maxima, nullptr, nullptr, &plan, &error),
            NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "engine");
  EXPECT_EQ(nsa_plan_create_with(engine.handle, nullptr, &call.maxima, nullptr, nullptr, &plan, &error),
            NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "spec");
  EXPECT_EQ(nsa_plan_create_with(engine.handle, &call.spec, nullptr, nullptr, nullptr, &plan, &error),
            NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "maxima");
  EXPECT_EQ(nsa_plan_create_with(engine.handle, &call.spec, &call.maxima, nullptr, nullptr, nullptr, &error),
            NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "plan");
  EXPECT_EQ(nsa_run(nullptr, nullptr, 0, nullptr, 0, nullptr, &error), NSA_INVALID_ARGUMENT);
  EXPECT_EQ(nsa_plan_workspace_size(nullptr, &bytes, &error), NSA_INVALID_ARGUMENT);
  EXPECT_EQ(nsa_plan_status(nullptr, nullptr, &error), NSA_INVALID_ARGUMENT);
  EXPECT_EQ(nsa_explain(engine.handle, &call.spec, &call.maxima, nullptr, &error), NSA_INVALID_ARGUMENT);
  EXPECT_EQ(nsa_tune_spec(nullptr, &call.spec, &call.maxima, nullptr, nullptr, &json, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "engine");
  EXPECT_EQ(nsa_engine_describe(nullptr, &json, &error), NSA_INVALID_ARGUMENT);
  EXPECT_EQ(nsa_engine_get_stats(nullptr, &stats, &error), NSA_INVALID_ARGUMENT);
  stats.size = 1;
  EXPECT_EQ(nsa_engine_get_stats(engine.handle, &stats, &error), NSA_INVALID_ARGUMENT);
  EXPECT_EQ(nsa_engine_create(nullptr, nullptr, nullptr), NSA_INVALID_ARGUMENT) << "the error may be null";
  EXPECT_STREQ(nsa_plan_describe(nullptr), "");
  nsa_engine_destroy(nullptr);
  nsa_plan_destroy(nullptr);
  nsa_free(nullptr);
}

} // namespace
} // namespace nsa::test::c_api
