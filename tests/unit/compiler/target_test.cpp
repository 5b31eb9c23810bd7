// The Target table, the embedded files, and the device library written into a source.
#include "compiler/driver/DeviceSource.h"
#include "compiler/driver/Target.h"
#include "compiler/driver/TemplateFiles.h"
#include "compiler/render/TemplateHeader.h"
#include "tests/harness/template_folder.h"

#include <gtest/gtest.h>

using namespace nsa;
using namespace nsa::test;

namespace {

constexpr const char *kTargetNames[] = {"cpu", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"};

TEST(Target, UnknownNamesListTheKnownOnes) {
  for (const char *name : kTargetNames)
    EXPECT_TRUE(Target::find(name)) << name;
  for (const char *name : {"", "sm_90", "sm_70", "gpu", "CPU"}) {
    Result<const Target *> target = Target::find(name);
    ASSERT_FALSE(target) << name;
    EXPECT_EQ(target.status().error().field, "target");
    for (const char *known : kTargetNames)
      EXPECT_NE(target.status().error().rule.find(known), std::string::npos);
  }
}

// The numbers are of the occupancy calculator of CUDA.
TEST(Target, CountsTheBlocksOfAMultiprocessor) {
  const Target &h100 = **Target::find("sm_90a"), &ada = **Target::find("sm_89");
  EXPECT_EQ(h100.residentBlocks(128, 128, 0), 4);
  EXPECT_EQ(h100.residentBlocks(129, 128, 0), 3);
  EXPECT_EQ(h100.residentBlocks(255, 256, 0), 1);
  EXPECT_EQ(h100.residentBlocks(128, 128, 100 << 10), 2);
  EXPECT_EQ(h100.residentBlocks(32, 128, 227 << 10), 1);
  EXPECT_EQ(ada.residentBlocks(32, 128, 99 << 10), 1);
  EXPECT_EQ(ada.residentBlocks(32, 128, 48 << 10), 2);
  EXPECT_EQ(h100.residentBlocks(255, 1024, 0), 1) << "it would not be launched";
  // Blocks of one warp: three of 168 registers lie on each part, and two of more.
  EXPECT_EQ(h100.residentBlocks(168, 32, 0), 12);
  EXPECT_EQ(h100.residentBlocks(169, 32, 0), 8);
  EXPECT_EQ(Target::registersFor(1, 128), 255);
  EXPECT_EQ(Target::registersFor(3, 128), 168);
  EXPECT_EQ(Target::registersFor(4, 128), 128);
  EXPECT_EQ(Target::registersFor(1, 512), 128);
  EXPECT_EQ(Target::registersFor(8, 32), 255);
  EXPECT_EQ(Target::registersFor(9, 32), 168);
}

TEST(Target, GivesEveryDriverValue) {
  for (const char *name : kTargetNames)
    for (DType dtype : {DType::kBf16, DType::kF16, DType::kF32}) {
      Values values = (*Target::find(name))->values("window", dtype, 8);
      for (const DriverValue &value : driverValues()) {
        ASSERT_TRUE(values.find(value.name)) << name << " " << value.name;
        int64_t number;
        EXPECT_TRUE(!value.isNumber || values.lookup(value.name, number)) << value.name;
      }
    }
}

TEST(Target, ValuesFollowTheContract) {
  auto value = [](const char *target, DType dtype, const char *name) {
    return *(*Target::find(target))->values("window", dtype, 16).find(name);
  };
  EXPECT_EQ(value("sm_80", DType::kBf16, "element"), "bf16");
  EXPECT_EQ(value("cpu", DType::kF16, "element"), "f16");
  EXPECT_EQ(value("sm_80", DType::kBf16, "dot_step"), "16");
  EXPECT_EQ(value("sm_80", DType::kF32, "dot_step"), "8");
  EXPECT_EQ(value("cpu", DType::kBf16, "dot_step"), "1");
  EXPECT_EQ(value("sm_80", DType::kBf16, "shared_limit"), "166912");
  EXPECT_EQ(value("sm_86", DType::kBf16, "shared_limit"), "101376");
  EXPECT_EQ(value("sm_90a", DType::kBf16, "shared_limit"), "232448");
  EXPECT_EQ(value("cpu", DType::kBf16, "vector_lanes"), "16");
}

TEST(TemplateFiles, EmbeddedEqualsTheFolderByteForByte) {
  Result<TemplateFiles> folder = TemplateFiles::read(NSA_TEST_TEMPLATES);
  ASSERT_TRUE(folder) << folder.status().toString();
  auto embedded = TemplateFiles::embedded().files();
  ASSERT_EQ(embedded.size(), folder->files().size());
  for (size_t i = 0; i < embedded.size(); ++i) {
    EXPECT_EQ(embedded[i].path, folder->files()[i].path);
    EXPECT_EQ(embedded[i].text, folder->files()[i].text) << embedded[i].path;
  }
}

TEST(TemplateFiles, BadFoldersAreErrors) {
  Result<TemplateFiles> missing = TemplateFiles::read("/nonexistent/templates");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(missing.status().error().field, "template_dir");

  TemplateFolder folder;
  Result<TemplateFiles> empty = TemplateFiles::read(folder.path());
  ASSERT_FALSE(empty);
  EXPECT_NE(empty.status().error().rule.find("holds no template"), std::string::npos);

  folder.write("tile/a.tile", "a");
  folder.write("tile/a.tile~", "editor");
  folder.write("README.md", "text");
  Result<TemplateFiles> one = TemplateFiles::read(folder.path());
  ASSERT_TRUE(one);
  ASSERT_EQ(one->files().size(), 1u);
  EXPECT_EQ(one->files()[0].path, "tile/a.tile");
}

TEST(DeviceSource, EveryHeaderStandsOnceBeforeItsUser) {
  TemplateFolder folder;
  folder.write("device/types.cuh", "#pragma once\nusing a = int;\n");
  folder.write("device/view.cuh", "#pragma once\n#include \"types.cuh\"\nusing b = a;\n");
  Result<TemplateFiles> files = TemplateFiles::read(folder.path());
  ASSERT_TRUE(files) << files.status().toString();
  Result<DeviceSource> source =
      inlineDeviceLibrary("#include \"view.cuh\"\n#include \"types.cuh\"\nb kernel;\n", "cuda/k.cu", *files);
  ASSERT_TRUE(source) << source.status().toString();
  EXPECT_EQ(source->text, "// ---- device/types.cuh\nusing a = int;\n"
                          "// ---- device/view.cuh\nusing b = a;\n"
                          "// ---- cuda/k.cu\nb kernel;\n");
  ASSERT_EQ(source->headers.size(), 2u);

  Result<DeviceSource> unknown = inlineDeviceLibrary("int x;\n#include \"vew.cuh\"\n", "cuda/k.cu", *files);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.status().error().value, "cuda/k.cu:2");
  EXPECT_NE(unknown.status().error().rule.find("device/vew.cuh"), std::string::npos);
  Result<DeviceSource> toolkit = inlineDeviceLibrary("#include <cuda_bf16.h>\n", "cuda/k.cu", *files);
  ASSERT_FALSE(toolkit);
  EXPECT_NE(toolkit.status().error().rule.find("only the device library"), std::string::npos);
}

} // namespace
