// Templates of a folder that is edited while an engine uses it: whatever the moment, a kernel is stored as one of the
// templates that it was made from.
#include "runtime/engine/compiler_library.h"
#include "runtime/engine/template_folder.h"
#include "tests/unit/runtime/planner_fixture.h"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <thread>

using namespace nsa;

namespace {

using TemplateEdit = test::PlannerFixture;

TEST_F(TemplateEdit, BetweenOpeningAndCompilingHasAKeyOfItsOwn) {
  options.templateDir = copyTemplates();
  const std::string edited = tile + "\n// edited\n";
  std::string content;
  {
    auto engine = open(MissPolicy::kDefault);
    write("attention", edited);
    content = describe(*engine)["launches"][0]["content"];
  }
  write("attention", tile);
  const Json undone = describe(*open(MissPolicy::kDefault));
  EXPECT_EQ(undone["source"], "compiled") << "what was stored is of the edited template";
  EXPECT_NE(undone["launches"][0]["content"], content);

  write("attention", edited);
  const Json again = describe(*open(MissPolicy::kFail));
  EXPECT_EQ(again["source"], "database");
  EXPECT_EQ(again["launches"][0]["content"], content);
}

TEST_F(TemplateEdit, BetweenOpeningAndTuningHasAKeyOfItsOwn) {
  options.templateDir = copyTemplates();
  {
    auto engine = open(MissPolicy::kTune);
    write("attention", tile + "\n// edited\n");
    EXPECT_EQ(describe(*engine)["tuned"], true);
  }
  write("attention", tile);
  EXPECT_EQ(open(MissPolicy::kFail)->plan(spec, maxima, nullptr).status().code(), ErrorCode::kCacheMiss);
}

// Two states in turn, of different length of stay: a kernel is of the state that it names, or there is none.
TEST_F(TemplateEdit, WhileCompilingMixesNoStates) {
  copyTemplates();
  const std::string states[2] = {tile, tile + "\n// edited\n"};
  const Problem problem = Problem::make(spec, maxima);
  Result<std::shared_ptr<const CompilerLibrary>> library = CompilerLibrary::open(options.compilerPath);
  ASSERT_TRUE(library) << library.status().toString();
  CompileRequest request;
  request.target = "cpu";
  request.op = problem.op;
  request.fixed = problem.fixed;
  request.templateDir = templates.path();
  Result<std::vector<Candidate>> candidates = (*library)->list(request);
  ASSERT_TRUE(candidates) << candidates.status().toString();
  request.templateName = candidates->front().templateName;
  request.config = *parseValues(candidates->front().config);
  std::string templatesOf[2], contentOf[2];
  for (int i = 0; i < 2; ++i) {
    write("attention", states[i]);
    Result<CompiledKernel> kernel = (*library)->compile(request);
    ASSERT_TRUE(kernel) << kernel.status().toString();
    EXPECT_EQ(kernel->templates, readTemplateFolder(templates.path())->content);
    templatesOf[i] = kernel->templates;
    contentOf[i] = kernel->content;
  }
  ASSERT_NE(templatesOf[0], templatesOf[1]);

  std::atomic<bool> ends = false;
  std::jthread editor([&] {
    for (int i = 0; !ends; ++i) {
      // In one step, as a file that is half written is a state of its own.
      std::filesystem::rename(folder.write("next", states[i % 2]), templates.file("tile/attention.mlir"));
      std::this_thread::sleep_for(std::chrono::milliseconds(i % 3));
    }
  });
  Status refused;
  while (refused.isOk()) {
    Result<CompiledKernel> kernel = (*library)->compile(request);
    if (!kernel)
      refused = kernel.status();
    else
      for (int i = 0; i < 2; ++i)
        EXPECT_TRUE(kernel->templates != templatesOf[i] || kernel->content == contentOf[i]) << "of the other state";
  }
  ends = true;
  EXPECT_EQ(refused.code(), ErrorCode::kIoError);
  EXPECT_NE(refused.error().message.find("template_dir " + templates.path() + " changed"), std::string::npos)
      << refused.toString();
}

TEST(TemplateFolderState, ShowsAnEditThatWasUndone) {
  const test::TemplateFolder folder;
  std::filesystem::create_directory(folder.file("tile"));
  folder.write("tile/a.mlir", "one");
  const TemplateFolderState before = *readTemplateFolder(folder.path());
  EXPECT_EQ(*readTemplateFolder(folder.path()), before);
  folder.write("tile/a.mlir", "two");
  folder.write("tile/a.mlir", "one");
  const TemplateFolderState undone = *readTemplateFolder(folder.path());
  EXPECT_EQ(undone.content, before.content);
  EXPECT_NE(undone.changes, before.changes);
  folder.write("tile/b.mlir", "");
  folder.remove("tile/b.mlir");
  const TemplateFolderState removed = *readTemplateFolder(folder.path());
  EXPECT_EQ(removed.content, before.content);
  EXPECT_NE(removed.changes, undone.changes);
  folder.remove("tile");
  EXPECT_NE(readTemplateFolder(folder.path())->content, before.content);
  EXPECT_EQ(readTemplateFolder(folder.file("none")).status().error().field, "template_dir");
}

TEST(TemplateFolderState, NamesDevices) {
  EXPECT_EQ(withTemplates("cpu x86-64-v4", "abc"), "cpu x86-64-v4 templates=abc");
  EXPECT_EQ(withTemplates("cpu x86-64-v4 templates=abc", "def"), "cpu x86-64-v4 templates=def");
  EXPECT_EQ(withTemplates("cpu x86-64-v4 templates=abc", ""), "cpu x86-64-v4");
}

} // namespace
