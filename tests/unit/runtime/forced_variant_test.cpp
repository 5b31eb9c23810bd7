// The name that `force_variant` has is checked when an engine opens.
#include "runtime/engine/choices/routes.h"
#include "runtime/engine/compile/template_folder.h"
#include "runtime/engine/engine.h"
#include "tests/harness/no_environment.h"
#include "tests/harness/scratch.h"

#include <cstring>
#include <gtest/gtest.h>

namespace nsa {
namespace {

class ForcedVariant : public testing::Test {
protected:
  Status open(const std::string &variant) const {
    EngineOptions options;
    options.device = "cpu";
    options.cachePath = ":memory:";
    options.cachePacks = std::string(kNone);
    options.cpuThreads = 1;
    options.templateDir = templateDir;
    options.forceVariant = variant;
    return Engine::open(options, test::noVariable).status();
  }

  std::string templateDir;
};

TEST_F(ForcedVariant, IsAnEmbeddedTemplateOrAWayOfAPlan) {
  for (const char *name :
       {"", "none", "attention", "attention_sm90", "row_attention", "decode_step", "sel_dq", "sel_dq_slots"})
    EXPECT_TRUE(open(name).isOk()) << name;
  for (const char *name : {"sel_dq_foo", "attentio", "deltas", "sel"}) {
    const Status status = open(name);
    ASSERT_FALSE(status.isOk()) << name;
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(status.error().field, "force_variant");
    EXPECT_EQ(status.error().value, "'" + std::string(name) + "'");
    EXPECT_EQ(status.error().rule,
              "must be one of attention, attention_sm90, row_attention, decode_step, sel_dq, sel_dq_slots");
  }
}

TEST_F(ForcedVariant, ItsErrorNamesTheVariable) {
  EngineOptions options;
  const auto environment = [](const char *name) -> const char * {
    return std::strcmp(name, "NSA_FORCE_VARIANT") == 0 ? "sel_dq_foo" : nullptr;
  };
  EXPECT_EQ(Engine::open(options, environment).status().error().field, "NSA_FORCE_VARIANT");
}

// The list is written down, as a runtime without the compiler has no templates.
TEST_F(ForcedVariant, TheEmbeddedTemplatesAreTheFolders) {
  const Result<std::vector<std::string>> found = variantsOf(NSA_SOURCE_DIR "/templates");
  ASSERT_TRUE(found) << found.status().toString();
  EXPECT_EQ(*found, std::vector<std::string>(std::begin(kVariants), std::end(kVariants)));
}

TEST_F(ForcedVariant, IsATemplateOfTheFolder) {
  test::Scratch folder;
  folder.write("tile/a.tile", "// a kernel\n  kernel  own_tile serves sel, dense\nfixed dtype\n");
  folder.write("cuda/own/b.cu", "//! kernel  own_cuda serves window\n//! targets gpu\n");
  folder.write("tile/c.tile", "kernel other serves sel\n");
  folder.write("tile/d.tile", "kernel program\n");
  folder.write("README", "kernel ignored serves dense\n");
  templateDir = folder.path();
  for (const char *name : {"own_tile", "own_cuda", "decode_step", "sel_dq"})
    EXPECT_TRUE(open(name).isOk()) << name;
  for (const char *name : {"attention", "other", "program", "ignored", "own"}) {
    const Status status = open(name);
    ASSERT_FALSE(status.isOk()) << name;
    EXPECT_EQ(status.error().rule, "must be one of own_cuda, own_tile, decode_step, sel_dq, sel_dq_slots");
    EXPECT_EQ(status.error().hint, "name a template of " + templateDir);
  }
}

} // namespace
} // namespace nsa
