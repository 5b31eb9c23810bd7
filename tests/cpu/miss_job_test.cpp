// The hint of a miss, pasted into a shell: afterwards the plan that was missed is made under the policy `fail`.
#include "runtime/base/config_text.h"
#include "runtime/engine/graph/pipeline.h"
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
  void paste(const std::string &line, const std::string &environment = "") {
    const std::string script = scratch.write("paste", line);
    const std::string command = "cd '" + scratch.path() + "' && env -u NSA_MISS -u NSA_TUNE_BUDGET " +
                                "NSA_CACHE_PACKS=none " + environment + " PATH='" + scratch.file("bin") +
                                "':\"$PATH\" sh -c \"$(cat '" + script + "')\" >'" + scratch.file("stdout") + "' 2>&1";
    const int status = std::system(command.c_str());
    // 3: a short budget of the environment ended before all was measured, and the kernels are stored.
    EXPECT_TRUE(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || (!environment.empty() && WEXITSTATUS(status) == 3)))
        << line << "\n"
        << test::readFile(scratch.file("stdout"));
  }
  std::string expectMiss() const {
    const Status status = planned();
    EXPECT_EQ(status.code(), ErrorCode::kCacheMiss) << status.toString();
    return status.isOk() ? "" : status.error().hint;
  }
  void expectCured(const std::string &line, const std::string &environment = "") {
    paste(line, environment);
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

TEST_F(MissJob, ThePastedLineServesEachOperator) {
  spec.cmpBlock = 8;
  spec.cmpStride = 4;
  spec.selBlock = 16;
  spec.selCount = 5;
  spec.gate = Gate::kSigmoid;
  for (const OperatorDef &def : publicOperators()) {
    spec.op = def.op;
    SCOPED_TRACE(std::string(def.name));
    settings.cachePath = scratch.file(std::string(def.name) + ".db");
    // compress has no queries, and combine has no keys, so that the number of queries is not limited.
    if (spec.op == Operator::kCompress || spec.op == Operator::kCombine)
      maxima = {.batch = 2, .tokensQ = 300, .seqlenQ = 150, .seqlenK = 100};
    else
      maxima = {.batch = 2, .tokensQ = 200, .seqlenQ = 100, .seqlenK = 150};
    expectCured(expectMiss(), "NSA_TUNE_BUDGET=0.2");
  }
}

// nsa_error has no place for this line.
TEST_F(MissJob, ThePastedLineIsWholeWhateverThePath) {
  settings.cachePath = scratch.path() + "/" + std::string(200, 'x') + "/" + std::string(150, 'y') + "/kernels.db";
  const std::string line = expectMiss();
  EXPECT_GT(line.size(), sizeof(nsa_error::hint));
  expectCured(line, "NSA_TUNE_BUDGET=0.2");
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

// Kernels that have nothing to measure can be missing too: explain finds them as a plan does.
TEST_F(MissJob, ExplainFailsWhereThePlanDoes) {
  spec.qkDim = spec.vDim = spec.window = spec.selBlock = 16;
  spec.cmpBlock = 8;
  spec.cmpStride = spec.selCount = 4;
  spec.layout = Layout::kPacked;
  maxima = {.batch = 1, .tokensQ = 1, .seqlenQ = 1, .seqlenK = 200};
  settings.missPolicy = NSA_MISS_DEFAULT;
  const std::string whole = scratch.file("whole.nsapack"), part = scratch.file("part.nsapack");
  for (const auto &[op, missing] :
       {std::pair(Operator::kWindow, "sequences"), std::pair(Operator::kDecode, "cache_sequences"),
        std::pair(Operator::kDecode, "ascend")}) {
    for (const std::string &file : {whole, part, database})
      std::filesystem::remove(file);
    spec.op = op;
    ASSERT_TRUE(planned().isOk());
    const std::string explained = "explain --op " + std::string(operatorName(op)) + " --config '" + configText(spec) +
                                  "' --seqlen-k 200 --seqlen-q 1 --device cpu --cache :memory: --miss fail";
    run("cache export " + whole + " --cache " + database);
    run(explained, 0, "NSA_CACHE_PACKS=" + whole);
    execute(std::string("DELETE FROM choices WHERE problem LIKE '") + missing + " %'");
    run("cache export " + part + " --cache " + database);
    const std::string text = run(explained, 1, "NSA_CACHE_PACKS=" + part);
    const std::string found = test::readFile(scratch.file("stderr"));
    EXPECT_NE(found.find("\n  " + std::string(missing) + " "), std::string::npos) << found;
    EXPECT_NE(text.find("problem    " + std::string(missing) + " "), std::string::npos) << text;
  }
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
