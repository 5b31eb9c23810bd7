// Checking and laying out programs through the C interface of the compiler library: what a request may not be, and
// where texts go.
#include "compiler/api/nsa_compiler.h"
#include "runtime/base/status.h"

#include <gtest/gtest.h>

#include <string>

namespace nsa {
namespace {

constexpr const char *kProgram = NSA_SOURCE_DIR "/templates/tile/ascend.tile";

// A call's status and the texts of its result.
struct Outcome {
  nsa_compiler_status status;
  std::string messages, output, error;
};

const nsa_compiler_api &api() { return *nsa_compiler_get_api(NSA_COMPILER_ABI_VERSION); }

Outcome outcomeOf(nsa_compiler_status status, nsa_compiler_result *result) {
  size_t bytes = 0;
  const auto *output = static_cast<const char *>(api().output(result, &bytes));
  Outcome outcome{status, api().messages(result), {output, bytes}, ""};
  outcome.error =
      std::string(api().error_field(result)) + ": " + api().error_rule(result) + api().error_message(result);
  api().destroy(result);
  return outcome;
}

Outcome check(const nsa_compiler_check_request &request) {
  nsa_compiler_result *result = nullptr;
  const nsa_compiler_status status = api().check(&request, &result);
  return outcomeOf(status, result);
}

Outcome format(const char *name, const char *text, size_t bytes) {
  nsa_compiler_result *result = nullptr;
  const nsa_compiler_status status = api().format(name, text, bytes, &result);
  return outcomeOf(status, result);
}

nsa_compiler_check_request request() { return {sizeof(nsa_compiler_check_request), kProgram, nullptr, 0, nullptr, 0}; }

TEST(LanguageApi, AGoodFileIsChecked) {
  const Outcome outcome = check(request());
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_EQ(outcome.messages, "");
  EXPECT_NE(outcome.output.find("ascend.tile: 21 programs are right"), std::string::npos) << outcome.output;
  nsa_compiler_check_request explained = request();
  explained.explain = 1;
  explained.target = "sm_80";
  EXPECT_EQ(check(explained).output.substr(0, 6), "sm_80,");
}

TEST(LanguageApi, ARequestHasItsSizeAFileAndValues) {
  nsa_compiler_check_request bad = request();
  bad.size = 8;
  EXPECT_EQ(check(bad).status, static_cast<int>(ErrorCode::kInvalidArgument));
  EXPECT_EQ(check(bad).error, "size: must be sizeof(nsa_compiler_check_request) = 48");
  bad = request();
  bad.path = "";
  EXPECT_EQ(check(bad).error, "path: must name a file");
  bad = request();
  bad.value_count = 1;
  EXPECT_EQ(check(bad).error, "values: every value needs a name and a text");
  const nsa_compiler_value twice[] = {{"warps", "1"}, {"warps", "2"}};
  bad.values = twice;
  bad.value_count = 2;
  EXPECT_EQ(check(bad).error, "warps: stands twice in values");
}

TEST(LanguageApi, ATextIsLaidOut) {
  const std::string text = "kernel x\nlet a=1\n";
  const Outcome outcome = format("x.tile", text.data(), text.size());
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.output, "kernel x\nlet a = 1\n");
  const Outcome wrong = format("x.tile", "let", 3);
  EXPECT_EQ(wrong.status, static_cast<int>(ErrorCode::kCompileFailed));
  EXPECT_EQ(wrong.output, "");
  EXPECT_EQ(wrong.messages.substr(0, 18), "x.tile:1:4: error:");
  EXPECT_EQ(format(nullptr, "", 0).error, "name: must point to a text");
  EXPECT_EQ(format("x.tile", nullptr, 1).error, "text: must point to a text");
  EXPECT_EQ(api().format("x.tile", "", 0, nullptr), static_cast<int>(ErrorCode::kInvalidArgument));
  EXPECT_STREQ(api().messages(nullptr), "");
}

} // namespace
} // namespace nsa
