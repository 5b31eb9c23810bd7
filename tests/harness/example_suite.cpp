// The programs of docs/examples/programs compute what their texts say: compiled, tuned, stored, served from a database
// and from a pack, and captured into a graph.
#include "cache/cache_file.h"
#include "cache/pack_writer.h"
#include "tests/harness/program_fixture.h"
#include "tests/harness/seed.h"

namespace nsa::test {
namespace {

// One engine for all cases.
class ExampleTable : public ProgramTest, public ::testing::WithParamInterface<ExampleCase> {
protected:
  nsa_engine *engine() {
    static const auto *shared = new tools::EngineHandle(engineOf(settings()));
    return shared->get();
  }
};

TEST_P(ExampleTable, MatchesTheReference) { check(engine(), GetParam(), "compiled"); }

INSTANTIATE_TEST_SUITE_P(Examples, ExampleTable, ::testing::ValuesIn(exampleCases()),
                         [](const auto &info) { return info.param.name(); });

class ExampleProgram : public ProgramTest, public ::testing::WithParamInterface<ExampleCase> {
protected:
  // A stored kernel serves: no compiler can be opened, and a miss is an error.
  tools::EngineHandle withoutCompiler(const std::string &database, const std::string &packs = "none") {
    tools::EngineSettings stored = settings(database, NSA_MISS_FAIL);
    stored.cachePacks = packs;
    stored.compilerPath = "absent.so";
    return engineOf(stored);
  }
};

TEST_P(ExampleProgram, IsTunedOnceAndServedFromADatabaseAndAPack) {
  const ExampleCase &example = GetParam();
  const ProgramRequest request = ProgramRequest::ofExample(example);
  const std::string database = scratch.file("kernels.db"), pack = scratch.file("kernels.nsapack");
  std::string config;
  {
    const tools::EngineHandle engine = engineOf(settings(database));
    // Beside other tests on a GPU, the first candidates may take seconds to compile.
    const Result<nlohmann::json> report = request.tune(engine.get(), 30);
    ASSERT_TRUE(report) << report.status().toString();
    SCOPED_TRACE(report->dump(2));
    EXPECT_TRUE(report->at("tuned").get<bool>());
    // In memory, because it was tuned there.
    check(engine.get(), example, "memory");
    Result<ProgramHandle> program = request.create(engine.get());
    ASSERT_TRUE(program) << program.status().toString();
    config = describeProgram(program->get()).at("config").dump();
  }
  {
    const tools::EngineHandle engine = withoutCompiler(database);
    check(engine.get(), example, "database");
    Result<ProgramHandle> program = request.create(engine.get());
    ASSERT_TRUE(program) << program.status().toString();
    EXPECT_EQ(describeProgram(program->get()).at("config").dump(), config) << "the winner is what was stored";
    Result<CacheFile> file = CacheFile::open(database);
    ASSERT_TRUE(file) << file.status().toString();
    const Result<PackReport> exported = writePack(*file, pack, {.tunedOnly = true, .source = "test"});
    ASSERT_TRUE(exported) << exported.status().toString();
    EXPECT_EQ(exported->choices, 1);
    EXPECT_EQ(exported->kernels, 1);
  }
  const tools::EngineHandle engine = withoutCompiler("", pack);
  check(engine.get(), example, "pack");
}

// A kernel serves calls of other sizes than the sizes it was made with.
TEST_P(ExampleProgram, ServesOtherSizesThanItWasMadeWith) {
  const tools::EngineHandle engine = engineOf(settings());
  ExampleCase made = GetParam();
  for (const char *scalar : {"rows", "length", "batch"})
    if (made.sizes.contains(scalar))
      made.sizes[scalar] *= 3;
  Result<ProgramHandle> program = ProgramRequest::ofExample(made).create(engine.get(), accelerator().stream());
  ASSERT_TRUE(program) << program.status().toString();
  std::mt19937_64 random(freshSeed());
  Result<ProgramCall> call = ProgramCall::make(accelerator(), program->get(), drawExample(GetParam(), random), 0);
  ASSERT_TRUE(call) << call.status().toString();
  const Status status = call->run();
  ASSERT_TRUE(status.isOk()) << status.toString();
  call->expectRight();
}

// On a GPU the recording is a CUDA graph, which replays on what lies in the tensors then.
TEST_P(ExampleProgram, ARecordedRunReplaysOnNewContents) {
  const tools::EngineHandle engine = engineOf(settings());
  const ProgramRequest request = ProgramRequest::ofExample(GetParam());
  Result<ProgramHandle> program = request.create(engine.get(), accelerator().stream());
  ASSERT_TRUE(program) << program.status().toString();
  std::mt19937_64 random(freshSeed());
  Result<ProgramCall> call = ProgramCall::make(accelerator(), program->get(), drawExample(GetParam(), random));
  ASSERT_TRUE(call) << call.status().toString();
  Result<tools::Recording> recording = accelerator().record([&] { return call->enqueue(); });
  ASSERT_TRUE(recording) << recording.status().toString();
  for (int replay = 0; replay < 2; ++replay) {
    ASSERT_TRUE(call->upload(drawExample(GetParam(), random)).isOk());
    ASSERT_TRUE((*recording)().isOk());
    ASSERT_TRUE(accelerator().synchronize().isOk());
    call->expectRight();
  }
}

INSTANTIATE_TEST_SUITE_P(Examples, ExampleProgram, ::testing::ValuesIn(briefExampleCases()),
                         [](const auto &info) { return info.param.program; });

} // namespace
} // namespace nsa::test
