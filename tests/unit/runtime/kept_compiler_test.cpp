// The compiler library that keeps its answers for tests (tests/harness/kept_compiler.cpp): an answer of a file is the
// compiler's, and a file is used for an equal request alone.
#include "runtime/engine/compile/compiler_library.h"
#include "tests/harness/kept_kernels.h"
#include "tests/unit/runtime/planner_fixture.h"

using namespace nsa;

namespace {

class KeptCompiler : public test::PlannerFixture {
protected:
  void SetUp() override {
    test::PlannerFixture::SetUp();
    Result<std::shared_ptr<const CompilerLibrary>> opened = CompilerLibrary::open(options.compilerPath);
    ASSERT_TRUE(opened) << opened.status().toString();
    library = *opened;
    const Problem problem = Problem::make(spec, maxima);
    request.target = "cpu";
    request.op = problem.opName();
    request.fixed = problem.fixed();
    request.cpuFeatures = "x86-64-v3";
  }
  CompiledKernel compile() const {
    Result<CompiledKernel> kernel = library->compile(request);
    EXPECT_TRUE(kernel) << kernel.status().toString();
    return kernel ? *kernel : CompiledKernel();
  }
  static void expectEqual(const CompiledKernel &kernel, const CompiledKernel &expected) {
    EXPECT_FALSE(kernel.binary.empty());
    EXPECT_TRUE(kernel.binary == expected.binary);
    EXPECT_EQ(kernel.manifestText, expected.manifestText);
  }

  test::Scratch files;
  const test::KeptKernels kept{files.file("kept")};
  std::shared_ptr<const CompilerLibrary> library;
  CompileRequest request;
};

TEST_F(KeptCompiler, AFileHasWhatTheCompilerMakes) {
  const CompiledKernel first = compile(), second = compile();
  expectEqual(second, first);
  EXPECT_EQ(second.compileMs, first.compileMs) << "it was compiled once more";
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(files.file("kept")), {}), 1);
  const test::KeptKernels none("");
  expectEqual(compile(), first);
}

TEST_F(KeptCompiler, CandidatesAreKeptToo) {
  const auto first = library->list(request), second = library->list(request);
  ASSERT_TRUE(first && second);
  ASSERT_EQ(first->size(), second->size());
  for (size_t i = 0; i < first->size(); ++i) {
    EXPECT_EQ((*first)[i].templateName, (*second)[i].templateName);
    EXPECT_EQ((*first)[i].config, (*second)[i].config);
    EXPECT_EQ((*first)[i].predictedCost, (*second)[i].predictedCost);
  }
}

TEST_F(KeptCompiler, ADamagedFileIsMadeAgain) {
  const CompiledKernel first = compile();
  const std::string path = std::filesystem::directory_iterator(files.file("kept"))->path();
  const std::string content = test::readFile(path);
  std::string damaged = content;
  damaged[content.size() / 2] ^= 1;
  for (const std::string &text : {damaged, content.substr(0, content.size() - 1), std::string()}) {
    test::writeFile(path, text);
    expectEqual(compile(), first);
    EXPECT_NE(test::readFile(path), text);
  }
}

TEST_F(KeptCompiler, AFileIsOfItsTemplates) {
  request.templateDir = copyTemplates();
  const CompiledKernel first = compile();
  write("attention", tile + "\n// edited\n");
  EXPECT_NE(compile().content, first.content);
  write("attention", tile);
  EXPECT_EQ(compile().content, first.content);
}

TEST_F(KeptCompiler, AFileIsOfItsTarget) {
  const CompiledKernel first = compile();
  request.cpuFeatures = "x86-64-v4";
  EXPECT_FALSE(compile().binary == first.binary);
}

TEST_F(KeptCompiler, AnErrorIsTheCompilers) {
  request.templateName = "absent";
  const Status told = library->compile(request).status();
  const test::KeptKernels none("");
  EXPECT_FALSE(told.isOk());
  EXPECT_EQ(told.toString(), library->compile(request).status().toString());
  EXPECT_FALSE(std::filesystem::exists(files.file("kept")));
}

} // namespace
