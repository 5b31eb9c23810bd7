// The hint of a miss, pasted into a shell: afterwards the plan that was missed is made under the policy `fail`.
#include "runtime/engine/pipeline.h"
#include "tests/cpu/program_job.h"
#include "tools/support/engine.h"

#include <filesystem>

namespace nsa::tools {
namespace {

class MissJob : public ProgramJob {
protected:
  MissJob() {
    // The line calls the program by its name.
    std::filesystem::create_directory(scratch.file("bin"));
    std::filesystem::create_symlink(NSA_PROGRAM, scratch.file("bin/nsa"));
    spec.op = Operator::kWindow;
    spec.queryHeads = 4;
    spec.kvHeads = 2;
    spec.qkDim = 16;
    spec.vDim = 8;
    spec.window = 40;
    settings.device = "cpu";
    settings.cachePath = database;
    settings.cachePacks = "none";
    settings.missPolicy = NSA_MISS_FAIL;
  }

  // Of a plan under the policy `fail`.
  Status planned() const {
    Result<EngineHandle> engine = createEngine(settings);
    return engine ? createPlan(engine->get(), spec, maxima).status() : engine.status();
  }
  // By `sh -c` in the scratch folder.
  void paste(const std::string &line) {
    const std::string script = scratch.write("paste", line);
    const std::string command = "cd '" + scratch.path() + "' && env -u NSA_MISS -u NSA_TUNE_BUDGET " +
                                "NSA_CACHE_PACKS=none PATH='" + scratch.file("bin") + "':\"$PATH\" sh -c \"$(cat '" +
                                script + "')\" >'" + scratch.file("stdout") + "' 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << line << "\n" << test::readFile(scratch.file("stdout"));
  }
  std::string expectMiss() const {
    const Status status = planned();
    EXPECT_EQ(status.code(), ErrorCode::kCacheMiss) << status.toString();
    return status.isOk() ? "" : status.error().hint;
  }
  void expectCured(const std::string &line) {
    paste(line);
    const Status status = planned();
    EXPECT_TRUE(status.isOk()) << line << "\n" << status.toString();
  }

  EngineSettings settings;
  Spec spec;
  Maxima maxima{.batch = 2, .tokensQ = 200, .seqlenQ = 100, .seqlenK = 150};
};

TEST_F(MissJob, ThePastedLineStoresWhatWasMissing) {
  settings.cachePath = scratch.file("it's a cache/kernels.db");
  expectCured(expectMiss());
}

TEST_F(MissJob, ThePastedLineKnowsTheProcessorThatIsCompiledFor) {
  settings.cpuFeatures = "x86-64-v3";
  const std::string line = expectMiss();
  EXPECT_TRUE(line.starts_with("NSA_CPU_FEATURES=x86-64-v3 nsa tune ")) << line;
  expectCured(line);
}

TEST_F(MissJob, ThePastedLineSaysAllOfADecode) {
  spec.op = Operator::kDecode;
  spec.layout = Layout::kPacked;
  spec.dtype = DType::kF32;
  spec.scale = 0.3f;
  spec.cmpBlock = 8;
  spec.cmpStride = 4;
  spec.selBlock = 16;
  spec.selCount = 5;
  spec.initBlocks = 2;
  spec.localBlocks = 1;
  spec.gate = Gate::kSoftmax;
  spec.gatePerGroup = true;
  spec.pageSize = 32;
  maxima = {.batch = 3, .tokensQ = 40, .seqlenQ = 20, .seqlenK = 200};
  const std::string line = expectMiss();
  EXPECT_NE(line.find(" --tokens-q 40 "), std::string::npos) << line;
  expectCured(line);
}

// Nothing is kept there: the line makes a pack.
TEST_F(MissJob, ThePastedLineMakesAPackForAnEngineWithoutADatabase) {
  settings.cachePath = ":memory:";
  const std::string line = expectMiss();
  EXPECT_TRUE(line.ends_with(" # a pack for NSA_CACHE_PACKS")) << line;
  paste(line);
  settings.cachePacks = scratch.file("kernels.nsapack");
  const Status status = planned();
  EXPECT_TRUE(status.isOk()) << status.toString();
}

// The program prints the command as its last line.
TEST_F(MissJob, TheProgramEndsInTheLine) {
  const std::string small = scratch.write(
      "small.json", R"({"query_heads": 4, "kv_heads": 2, "qk_dim": 16, "v_dim": 8, "dtype": "fp32", "window": 40})");
  const std::string file = scratch.file("in.safetensors");
  run("generate --op window --config " + small + " --batch 2 --seqlen-k 150 --seqlen-q 100 --output " + file);
  const std::string missed = "run --op window --config " + small + " --input " + file + " --output " + output +
                             " --device cpu --miss fail --cache " + database;
  run(missed, 1, "NSA_CACHE_PACKS=none");
  std::string text = test::readFile(scratch.file("stderr"));
  ASSERT_TRUE(text.ends_with("\n")) << text;
  text.pop_back();
  const std::string line = text.substr(text.rfind('\n') + 1);
  EXPECT_TRUE(line.starts_with("nsa tune --op window --config '{")) << text;
  paste(line);
  run(missed, 0, "NSA_CACHE_PACKS=none");
}

} // namespace
} // namespace nsa::tools
