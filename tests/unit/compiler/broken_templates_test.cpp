// Templates that are wrong: the compiler names the file, the line and the rule. And a template is the one definition of
// its operator for every target.
#include "tests/harness/template_folder.h"
#include "tests/unit/compiler/compile_call.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace nsa;
using namespace nsa::test;

namespace {

const std::string kTile = "tile/attention.mlir";

class BrokenTemplates : public testing::Test {
protected:
  void SetUp() override {
    folder.copyFrom(NSA_TEST_TEMPLATES);
    call.templateDir = folder.path();
  }
  Status error() {
    auto compiled = call.compile();
    return compiled.status();
  }

  TemplateFolder folder;
  CompileCall call;
};

TEST_F(BrokenTemplates, WithoutItsTemplateTheOperatorFails) {
  folder.remove("tile");
  folder.remove("cuda");
  for (const char *target : {"cpu", "sm_80"}) {
    call.target = target;
    Status status = error();
    EXPECT_EQ(status.code(), ErrorCode::kUnsupported);
    EXPECT_EQ(status.error().message, std::string("no template serves operator window on target ") + target);
  }
}

TEST_F(BrokenTemplates, HeaderFaultsNameTheLine) {
  folder.replace(kTile, "//! template attention", "//! templete attention");
  Status status = error();
  EXPECT_EQ(status.code(), ErrorCode::kCompileFailed);
  EXPECT_EQ(status.error().value.substr(0, 20), "tile/attention.mlir:");
  EXPECT_NE(status.error().rule.find("unknown key 'templete'"), std::string::npos);
}

TEST_F(BrokenTemplates, UnknownTargetsAndTakenNamesAreFaults) {
  std::string text = folder.read(kTile);
  folder.write("tile/copy.mlir", text);
  EXPECT_NE(error().error().rule.find("the name attention is taken by tile/attention.mlir"), std::string::npos);
  folder.remove("tile/copy.mlir");
  folder.replace(kTile, "//! template attention", "//! template attention\n//! targets sm_70");
  EXPECT_NE(error().error().rule.find("unknown target 'sm_70'"), std::string::npos);
}

TEST_F(BrokenTemplates, AConditionOfAnArgumentNamesItsLine) {
  const std::string header = "header/causal_attention_arguments.inc";
  folder.replace(header, "k_offset int32 1 if key_offset && !packed", "k_offset int32 1 if 1 / packed");
  const std::string text = folder.read(header);
  const auto lines = std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(text.find("1 / packed")), '\n');
  call.target = "sm_80";
  call.templateName = "row_attention";
  const Status status = error();
  EXPECT_EQ(status.code(), ErrorCode::kCompileFailed);
  EXPECT_EQ(status.error().value, header + ":" + std::to_string(lines + 1)) << status.toString();
  EXPECT_NE(status.error().rule.find("divides by zero"), std::string::npos) << status.toString();
}

TEST_F(BrokenTemplates, UnknownHolesNameTheHole) {
  folder.replace(kTile, "${group}", "${gruop}");
  Status status = error();
  EXPECT_EQ(status.code(), ErrorCode::kCompileFailed);
  EXPECT_NE(status.error().rule.find("'${gruop}'"), std::string::npos);
}

TEST_F(BrokenTemplates, MlirFaultsNameTheTemplatesLine) {
  std::string text = folder.read(kTile);
  size_t body = text.find("func.func");
  ASSERT_NE(body, std::string::npos);
  folder.write(kTile, text.substr(0, body) + "func.func @attention(%q: !tile.view<${element}, 3>) {\n"
                                             "  %zero = arith.constant 0 : i32\n"
                                             "  %one = arith.addi %zero, %missing : i32\n"
                                             "  return\n}\n");
  auto lines = std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(body), '\n');
  for (const char *target : {"cpu", "sm_80"}) {
    call.target = target;
    Status status = error();
    EXPECT_EQ(status.code(), ErrorCode::kCompileFailed) << status.toString();
    EXPECT_EQ(status.error().value, kTile + ":" + std::to_string(lines + 3)) << status.toString();
    EXPECT_NE(status.error().rule.find("undeclared"), std::string::npos) << status.toString();
  }
}

TEST_F(BrokenTemplates, MlirFaultsOfAPartNameThePartsLine) {
  folder.replace("tile/part/softmax_step.mlir", "%m_next = arith.maxnumf %m, %s_max",
                 "%m_next = arith.maxnumf %m, %gone");
  const Status status = error();
  EXPECT_EQ(status.code(), ErrorCode::kCompileFailed) << status.toString();
  EXPECT_EQ(status.error().value, "tile/part/softmax_step.mlir:4") << status.toString();
}

TEST_F(BrokenTemplates, APartThatIsMissingIsNamed) {
  folder.remove("tile/part/softmax_step.mlir");
  const Status status = error();
  EXPECT_EQ(status.code(), ErrorCode::kCompileFailed) << status.toString();
  EXPECT_EQ(status.error().value.substr(0, 20), "tile/attention.mlir:") << status.toString();
  EXPECT_EQ(status.error().rule, "there is no part 'tile/part/softmax_step.mlir'");
}

TEST_F(BrokenTemplates, TooMuchSharedMemoryNamesBothNumbers) {
  // Without the header's own rules the passes meet the limit.
  std::string text = folder.read(kTile), kept;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin) + 1;
    if (text.compare(begin, 21, "//! require cpu || sh") != 0 && text.compare(begin, 21, "//! require cpu || re") != 0)
      kept += text.substr(begin, end - begin);
    begin = end;
  }
  folder.write(kTile, kept);
  call.target = "sm_86";
  call.fixed["qk_dim"] = call.fixed["v_dim"] = "256";
  call.config = {{"key_tile", "128"}, {"query_tile", "128"}, {"stages", "3"}, {"warps", "8"}};
  call.stage = NSA_COMPILER_STAGE_SCHEDULED;
  Status status = error();
  EXPECT_EQ(status.code(), ErrorCode::kUnsupported) << status.toString();
  EXPECT_NE(status.error().rule.find("bytes of shared memory"), std::string::npos) << status.toString();
  EXPECT_NE(status.error().rule.find("101376"), std::string::npos) << status.toString();
}

TEST_F(BrokenTemplates, ADeviceHeaderThatIsMissingIsNamed) {
  folder.remove("device");
  call.target = "sm_80";
  call.stage = NSA_COMPILER_STAGE_CUDA;
  Status status = error();
  EXPECT_EQ(status.code(), ErrorCode::kCompileFailed);
  EXPECT_NE(status.error().rule.find("there is no device/"), std::string::npos) << status.toString();
}

// Nothing may stand in for the template: an operation changed in its text changes what every target runs.
TEST_F(BrokenTemplates, ChangingOneOperationChangesCpuAndCuda) {
  auto emit = [&](const char *target, nsa_compiler_stage stage) {
    call.target = target;
    call.stage = stage;
    auto compiled = call.compile();
    EXPECT_TRUE(compiled) << compiled.status().toString();
    return compiled ? compiled->bytes : std::string();
  };
  call.templateName = "attention";
  std::string cpuBefore = emit("cpu", NSA_COMPILER_STAGE_LLVM);
  std::string cudaBefore = emit("sm_80", NSA_COMPILER_STAGE_CUDA);
  std::string binaryBefore = emit("cpu", NSA_COMPILER_STAGE_BINARY);
  folder.replace("tile/part/softmax_step.mlir", "arith.maxnumf", "arith.minnumf");
  EXPECT_NE(emit("cpu", NSA_COMPILER_STAGE_LLVM), cpuBefore);
  EXPECT_NE(emit("sm_80", NSA_COMPILER_STAGE_CUDA), cudaBefore);
  EXPECT_NE(emit("cpu", NSA_COMPILER_STAGE_BINARY), binaryBefore);
}

} // namespace
