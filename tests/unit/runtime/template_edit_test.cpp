// Templates of a folder that is edited while an engine uses it: whatever the moment, a kernel is stored as one of the
// templates that it was made from.
#include "compiler/driver/TemplateFiles.h"
#include "runtime/engine/compile/compiler_library.h"
#include "runtime/engine/compile/template_folder.h"
#include "tests/unit/runtime/planner_fixture.h"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <thread>

using namespace nsa;

namespace {

class TemplateEdit : public test::PlannerFixture {
protected:
  void SetUp() override {
    test::PlannerFixture::SetUp();
    Result<std::shared_ptr<const CompilerLibrary>> opened = CompilerLibrary::open(options.compilerPath);
    ASSERT_TRUE(opened) << opened.status().toString();
    library = *opened;
  }
  // The first candidate of the spec, by a copy of the templates.
  void requestOfACopy() {
    copyTemplates();
    const Problem problem = Problem::make(spec, maxima);
    request.target = "cpu";
    request.op = problem.opName();
    request.fixed = problem.fixed();
    request.templateDir = templates.path();
    Result<std::vector<Candidate>> candidates = library->list(request);
    ASSERT_TRUE(candidates) << candidates.status().toString();
    request.templateName = candidates->front().templateName;
    request.config = *parseValues(candidates->front().config);
  }

  std::shared_ptr<const CompilerLibrary> library;
  CompileRequest request;
};

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
  ASSERT_NO_FATAL_FAILURE(requestOfACopy());
  const std::string states[2] = {tile, tile + "\n// edited\n"};
  std::string templatesOf[2], contentOf[2];
  for (int i = 0; i < 2; ++i) {
    write("attention", states[i]);
    Result<CompiledKernel> kernel = library->compile(request);
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
      std::filesystem::rename(folder.write("next", states[i % 2]), templates.file("tile/attention.tile"));
      std::this_thread::sleep_for(std::chrono::milliseconds(i % 3));
    }
  });
  Status refused;
  while (refused.isOk()) {
    Result<CompiledKernel> kernel = library->compile(request);
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

// An editor that keeps a file of its own beside the template that it shows.
TEST_F(TemplateEdit, OfWhatIsNoTemplateDisturbsNoCompilation) {
  ASSERT_NO_FATAL_FAILURE(requestOfACopy());
  const std::string content = readTemplateFolder(templates.path())->content;
  std::atomic<bool> ends = false;
  std::atomic<int> writes = 0;
  std::jthread editor([&] {
    while (!ends) {
      templates.write("tile/.x.swp", std::to_string(++writes));
      templates.remove("tile/.x.swp");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  for (int disturbed = 0; disturbed < 3 && !HasFailure();) {
    const int before = writes;
    Result<CompiledKernel> kernel = library->compile(request);
    disturbed += writes > before + 1; // one of them began and ended meanwhile
    EXPECT_TRUE(kernel) << kernel.status().toString();
    EXPECT_TRUE(!kernel || kernel->templates == content) << kernel->templates;
  }
  ends = true;
}

// A file that no compilation reads is in no key, and each file that one reads is.
TEST(TemplateFolderState, IsOfTheFilesThatTheCompilerReads) {
  const test::TemplateFolder folder;
  folder.write("tile/a.tile", "one");
  const auto filesRead = [&] {
    Result<TemplateFiles> files = TemplateFiles::read(folder.path());
    EXPECT_TRUE(files) << files.status().toString();
    return files ? files->files().size() : 0;
  };
  const TemplateFolderState before = *readTemplateFolder(folder.path());
  int templates = 0;
  const std::vector<std::string> names = {
      "tile/b.tile", "tile/.b.tile",     "tile/b.tile.tile",  "tile/inner/b.tile", "cuda/b.cu",        "device/b.cuh",
      "b.tile",      "tile/.tile",       "tile/b.TILE",       "tile/b.tile~",      "tile/.b.tile.swp", "tile/b.tile.cu",
      "tile/b.cu",   "tile/b.cuh",       "cuda/b.cuh",        "cuda/b.tile",       "device/b.cu",      "tiles/b.tile",
      "Tile/b.tile", ".git/tile/b.tile", "inner/tile/b.tile", "README.md",         "tile/README",      "tile/b.",
      "tile/b tile", "tile/tile",        "cuda/#b.cu#",       "cuda/b.cu.orig"};
  for (const std::string &name : names) {
    folder.write(name, "text");
    const bool isRead = filesRead() == 2;
    templates += isRead;
    const TemplateFolderState with = *readTemplateFolder(folder.path());
    EXPECT_EQ(with.content != before.content, isRead) << name;
    EXPECT_EQ(with.changes != before.changes, isRead) << name;
    folder.remove(name);
    EXPECT_EQ(*readTemplateFolder(folder.path()), before) << name;
  }
  EXPECT_EQ(templates, 6);
  std::filesystem::create_directory(folder.file("tile/folder.tile"));
  std::filesystem::create_symlink("nowhere", folder.file("tile/link.tile"));
  EXPECT_EQ(filesRead(), 1u);
  EXPECT_EQ(*readTemplateFolder(folder.path()), before);
}

TEST(TemplateFolderState, ShowsAnEditThatWasUndone) {
  const test::TemplateFolder folder;
  std::filesystem::create_directory(folder.file("tile"));
  folder.write("tile/a.tile", "one");
  const TemplateFolderState before = *readTemplateFolder(folder.path());
  EXPECT_EQ(*readTemplateFolder(folder.path()), before);
  folder.write("tile/a.tile", "two");
  folder.write("tile/a.tile", "one");
  const TemplateFolderState undone = *readTemplateFolder(folder.path());
  EXPECT_EQ(undone.content, before.content);
  EXPECT_NE(undone.changes, before.changes);
  std::filesystem::rename(folder.file("tile/a.tile"), folder.file("tile/b.tile"));
  std::filesystem::rename(folder.file("tile/b.tile"), folder.file("tile/a.tile"));
  const TemplateFolderState renamed = *readTemplateFolder(folder.path());
  EXPECT_EQ(renamed.content, before.content);
  EXPECT_NE(renamed.changes, undone.changes);
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
