// An engine with nothing stored, in an environment that names files full of kernels.
#include "tools/support/engine.h"

#include "cache/pack_writer.h"
#include "tests/harness/scratch.h"
#include "tests/unit/runtime/stored_kernel.h"

#include <cstdlib>

namespace nsa::tools {
namespace {

class NothingStored : public ::testing::Test {
protected:
  void SetUp() override {
    spec.op = Operator::kWindow;
    spec.dtype = DType::kBf16;
    spec.queryHeads = 4;
    spec.kvHeads = 1;
    spec.qkDim = spec.vDim = 64;
    spec.window = 8;
    const std::string database = scratch.file("from.db");
    test::storeKernel(database, spec, maxima, {}, test::countingCode());
    Result<CacheFile> from = CacheFile::open(database);
    ASSERT_TRUE(from) << from.status().toString();
    const Result<PackReport> written = writePack(*from, pack, {.source = "test"});
    ASSERT_TRUE(written) << written.status().toString();
    settings.cachePath = scratch.file("own.db");
    settings.compilerPath = "absent.so";
  }
  void TearDown() override {
    for (const char *name : {"NSA_CACHE_PACKS", "NSA_PIN", "NSA_FALLBACKS"})
      unsetenv(name);
  }

  Status plan(const EngineSettings &of) const {
    Result<EngineHandle> engine = createEngine(of);
    return engine ? createPlan(engine->get(), spec, maxima).status() : engine.status();
  }

  Spec spec;
  Maxima maxima{.batch = 1, .tokensQ = 16, .seqlenQ = 16, .seqlenK = 16};
  test::Scratch scratch;
  const std::string pack = scratch.file("kernels.nsapack");
  EngineSettings settings;
};

TEST_F(NothingStored, APackDoesNotServe) {
  setenv("NSA_CACHE_PACKS", pack.c_str(), 1);
  settings.missPolicy = NSA_MISS_FAIL;
  const Status served = plan(settings);
  ASSERT_TRUE(served.isOk()) << served.toString();
  EXPECT_EQ(plan(withNothingStored(settings)).code(), ErrorCode::kCacheMiss);
}

// Tuning is what a pinned engine refuses, and compiling what these steps forbid: it gets as far as the compiler.
TEST_F(NothingStored, NeitherAPinNorForbiddenStepsCount) {
  setenv("NSA_PIN", pack.c_str(), 1);
  setenv("NSA_FALLBACKS", "exact", 1);
  for (const nsa_miss_policy policy : {NSA_MISS_DEFAULT, NSA_MISS_TUNE}) {
    settings.missPolicy = policy;
    const Status status = plan(withNothingStored(settings));
    ASSERT_FALSE(status.isOk());
    EXPECT_NE(status.toString().find("absent.so"), std::string::npos) << status.toString();
  }
}

} // namespace
} // namespace nsa::tools
