// Templates that are wrong: the compiler names the file, the line and the rule. And a template is the one definition of
// its operator for every target.
#include "tests/harness/template_folder.h"
#include "tests/unit/compiler/compile_call.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace nsa;
using namespace nsa::test;

namespace {

const std::string kTile = "tile/attention.tile";

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
  folder.replace(kTile, "\nrequire dtype_bytes", "\nrequire dtype_byte");
  Status status = error();
  EXPECT_EQ(status.code(), ErrorCode::kCompileFailed);
  EXPECT_EQ(status.error().value.substr(0, 20), "tile/attention.tile:");
  EXPECT_NE(status.error().rule.find("unknown name 'dtype_byte'"), std::string::npos);
}

TEST_F(BrokenTemplates, UnknownTargetsAndTakenNamesAreFaults) {
  std::string text = folder.read(kTile);
  folder.write("tile/copy.tile", text);
  EXPECT_NE(error().error().rule.find("the name attention is taken by tile/attention.tile"), std::string::npos);
  folder.remove("tile/copy.tile");
  folder.replace(kTile, "\nfixed   dtype", "\ntargets sm_70\nfixed   dtype");
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

TEST_F(BrokenTemplates, PagesThatNoViewHasNameTheLine) {
  const std::string header = "header/causal_attention_arguments.inc";
  call.target = "sm_80";
  call.templateName = "row_attention";
  for (const auto &[line, rows] : {std::pair("lse fp32 3 paged 0 - 64", "paged 0 - 64 = -64"),
                                   {"lse fp32 1 paged 64", "paged 64 = 64"},
                                   {"lse fp32 3 paged 1 / packed", "divides by zero"}}) {
    const std::string before = folder.read(header);
    folder.replace(header, "lse fp32 3", line);
    const Status status = error();
    EXPECT_EQ(status.code(), ErrorCode::kCompileFailed) << line;
    EXPECT_TRUE(status.error().value.starts_with(header + ":")) << status.toString();
    EXPECT_NE(status.error().rule.find(rows), std::string::npos) << status.toString();
    folder.write(header, before);
  }
}

TEST_F(BrokenTemplates, UnknownHolesNameTheHole) {
  folder.replace("cuda/simt/row_attention.cu", "${facts}", "${fact}");
  call.target = "sm_80";
  call.templateName = "row_attention";
  const Status status = error();
  EXPECT_EQ(status.code(), ErrorCode::kCompileFailed);
  EXPECT_TRUE(status.error().value.starts_with("cuda/simt/row_attention.cu:")) << status.toString();
  EXPECT_NE(status.error().rule.find("'${fact}'"), std::string::npos) << status.toString();
}

// All mistakes of a text are told at once, each with its place.
TEST_F(BrokenTemplates, WhatDoesNotParseNamesTheCharacters) {
  folder.write(kTile, "kernel attention serves dense, window, cmp\nlet a = 1 +\n\nlet b = (2\n");
  const Status status = error();
  EXPECT_EQ(status.code(), ErrorCode::kCompileFailed) << status.toString();
  EXPECT_TRUE(status.error().value.starts_with(kTile + ":")) << status.toString();
  EXPECT_NE(status.error().rule.find("; " + kTile + ":"), std::string::npos) << status.toString();
}

TEST_F(BrokenTemplates, WhatHasNoTypeNamesTheCharacter) {
  const std::string text = folder.read(kTile);
  const size_t place = text.find("load q[place]");
  ASSERT_NE(place, std::string::npos);
  folder.replace(kTile, "load q[place]", "load qu[place]");
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(place), '\n');
  for (const char *target : {"cpu", "sm_80"}) {
    call.target = target;
    const Status status = error();
    EXPECT_EQ(status.code(), ErrorCode::kCompileFailed) << status.toString();
    EXPECT_EQ(status.error().value, kTile + ":" + std::to_string(line) + ":19") << status.toString();
    EXPECT_NE(status.error().rule.find("'qu'"), std::string::npos) << status.toString();
  }
}

TEST_F(BrokenTemplates, AFaultOfALibraryNamesTheLibrarysLine) {
  folder.replace("tile/library/softmax.tile", "max(m, max(s) over key)", "max(m, max(gone) over key)");
  const Status status = error();
  EXPECT_EQ(status.code(), ErrorCode::kCompileFailed) << status.toString();
  EXPECT_TRUE(status.error().value.starts_with("tile/library/softmax.tile:8:")) << status.toString();
}

TEST_F(BrokenTemplates, AnImportThatBreaksARuleIsNamed) {
  const std::string text = folder.read(kTile);
  const struct {
    const char *file, *content, *value, *rule;
  } cases[] = {
      {"tile/library/one.tile", "library one\nimport two\n", "tile/library/one.tile:2:8", "there is no library 'two'"},
      {"tile/library/one.tile", "library one\n\nimport one\n", "tile/library/one.tile:3:8",
       "library 'one' imports itself; tile/library/one.tile:3:8: note: imported here"},
      {"tile/library/one.tile", "library other\n", "tile/library/one.tile:1",
       "the library 'other' has another name than its file"},
      {"tile/library/one.tile", "kernel one\n", "tile/library/one.tile:1", "a file of tile/library is a library"},
      {"tile/library/inner/one.tile", "library one\n", "tile/library/inner/one.tile:1",
       "the library 'one' has another name than its file"},
      {"tile/one.tile", "library one\n", "tile/one.tile:1",
       "a file of tile is a kernel, and a library is in tile/library"}};
  for (const auto &[file, content, value, rule] : cases) {
    folder.write(file, content);
    const Status status = error();
    EXPECT_EQ(status.code(), ErrorCode::kCompileFailed) << status.toString();
    EXPECT_EQ(status.error().value, value) << status.toString();
    EXPECT_EQ(status.error().rule, rule);
    folder.remove(file);
  }
  folder.write("tile/library/one.tile", "library one\nimport two\n");
  folder.write("tile/library/two.tile", "library two\nimport one\n");
  Status status = error();
  EXPECT_NE(status.error().rule.find("imports itself"), std::string::npos) << status.toString();
  folder.remove("tile/library/one.tile");
  folder.remove("tile/library/two.tile");
  folder.write("tile/library/one.tile", "library one\nimport softmx\n");
  EXPECT_EQ(error().error().hint, "did you mean 'softmax'?");
  folder.remove("tile/library/one.tile");

  // A name of a library is no path, so that no import leaves the folder.
  folder.write("secret.tile", "library secret\n");
  for (const char *name : {"../secret", "\"../secret\"", "secret"}) {
    folder.write(kTile, text + "import " + name + "\n");
    status = error();
    EXPECT_EQ(status.code(), ErrorCode::kCompileFailed) << status.toString();
    EXPECT_TRUE(status.error().value.starts_with(kTile + ":")) << status.toString();
  }
}

TEST_F(BrokenTemplates, ALibraryThatIsMissingIsNamed) {
  folder.remove("tile/library/softmax.tile");
  const Status status = error();
  EXPECT_EQ(status.code(), ErrorCode::kCompileFailed) << status.toString();
  EXPECT_EQ(status.error().rule, "there is no library 'softmax'");
}

TEST_F(BrokenTemplates, TooMuchSharedMemoryNamesBothNumbers) {
  // Without the header's own rules the passes meet the limit.
  std::string text = folder.read(kTile), kept;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin) + 1;
    if (text.compare(begin, 17, "require cpu || sh") != 0 && text.compare(begin, 17, "require cpu || re") != 0)
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

// A library is part of the kernels that import it, and of no other.
TEST_F(BrokenTemplates, AnEditOfALibraryIsAnotherRevisionOfItsKernels) {
  const auto revision = [&](const char *op) {
    call.op = op;
    auto compiled = call.compile();
    EXPECT_TRUE(compiled) << compiled.status().toString();
    return compiled ? Manifest::parse(compiled->manifest)->revision : "";
  };
  call.templateName = "attention";
  const std::string before = revision("window");
  for (const char *library : {"softmax", "status", "gates"}) {
    const std::string file = std::string("tile/library/") + library + ".tile", text = folder.read(file);
    folder.write(file, text + "// edited\n");
    // `status` is imported by a library.
    EXPECT_EQ(revision("window") != before, library != std::string("gates")) << library;
    folder.write(file, text);
  }
  EXPECT_EQ(revision("window"), before);
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
  folder.replace("tile/library/softmax.tile", "max(m, max(s) over key)", "min(m, max(s) over key)");
  EXPECT_NE(emit("cpu", NSA_COMPILER_STAGE_LLVM), cpuBefore);
  EXPECT_NE(emit("sm_80", NSA_COMPILER_STAGE_CUDA), cudaBefore);
  EXPECT_NE(emit("cpu", NSA_COMPILER_STAGE_BINARY), binaryBefore);
}

} // namespace
