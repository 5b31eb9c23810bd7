// What explain says of a default that would be compiled, with a compiler library that compiles nothing: why it is the
// first candidate, and what is left where the candidates cannot be listed.
#include "runtime/engine/choices/routes.h"
#include "tests/unit/runtime/fallback_fixture.h"

namespace nsa::test::c_api {
namespace {

class ExplainTest : public Fallback {
protected:
  ExplainTest() {
    // As many queries as keys, for which thresholds are measured.
    call.maxima.max_batch = 1;
    call.maxima.max_tokens_q = call.maxima.max_seqlen_q = call.maxima.max_seqlen_k;
  }
  void storeThreshold(int64_t threshold) {
    std::string warning;
    Result<std::unique_ptr<KernelStore>> store = KernelStore::open({.path = cache, .readOnly = false}, warning);
    ASSERT_TRUE(store.isOk()) << store.status().toString();
    const Spec spec = call.internalSpec();
    const Status status =
        (*store)->putRoute({routeFamily(spec), cpuDeviceKey(), attentionRoute(spec.op), threshold, "", {}});
    ASSERT_TRUE(status.isOk()) << status.toString();
  }
  void storeNeighbour() {
    std::string warning;
    Result<std::unique_ptr<KernelStore>> store = KernelStore::open({.path = cache, .readOnly = false}, warning);
    ASSERT_TRUE(store.isOk()) << store.status().toString();
    Maxima longer = call.internalMaxima();
    longer.seqlenK = 600;
    storeChoice(**store, call.internalSpec(), longer, {.templateName = "neighbour"}, countingCode());
  }
  Json explainUnder(nsa_miss_policy policy, const char *compiler) {
    const Engine engine(cache, [&](nsa_engine_options &options) {
      options.miss_policy = policy;
      options.compiler_path = compiler;
    });
    EXPECT_EQ(engine.status, NSA_OK) << engine.error.message;
    return explain(engine, call);
  }
};

TEST_F(ExplainTest, ADefaultIsTheFirstByPredictedCost) {
  const Json told = explainUnder(NSA_MISS_DEFAULT, NSA_LISTING_COMPILER);
  EXPECT_EQ(told["would"], "compile the first candidate");
  EXPECT_EQ(told["variant"], "attention");
  EXPECT_EQ(told["why"], "the first by predicted cost");
}

TEST_F(ExplainTest, ADefaultNamesTheThresholdThatPutsATemplateFirst) {
  storeThreshold(100);
  Json told = explainUnder(NSA_MISS_DEFAULT, NSA_LISTING_COMPILER);
  EXPECT_EQ(told["variant"], "row_attention");
  EXPECT_EQ(told["why"],
            "the first by predicted cost, where window.attention_from puts the template row_attention first");
  storeThreshold(10);
  told = explainUnder(NSA_MISS_DEFAULT, NSA_LISTING_COMPILER);
  EXPECT_EQ(told["variant"], "attention");
  EXPECT_EQ(told["why"],
            "the first by predicted cost, where window.attention_from puts the template row_attention last");
}

TEST_F(ExplainTest, ADefaultNamesTheStoredKernelsThatItGoesBefore) {
  storeThreshold(100);
  storeNeighbour(); // of another template than the threshold says
  Json told = explainUnder(NSA_MISS_DEFAULT, NSA_LISTING_COMPILER);
  EXPECT_EQ(told["would"], "compile the first candidate");
  EXPECT_EQ(told["why"],
            "the first by predicted cost, where window.attention_from puts the template row_attention first; it goes "
            "before the kernel stored for seqlen_k=1024 instead of 64 (nearest)");

  store(call, {.templateName = "of_another_type", .dtype = "fp16"}, countingCode());
  told = explainUnder(NSA_MISS_DEFAULT, NSA_LISTING_COMPILER);
  const std::string why = told["why"];
  EXPECT_NE(why.find(" first; the stored kernel cannot serve: "), std::string::npos) << why;
  EXPECT_NE(why.find("dtype"), std::string::npos) << why;
}

// A tuning without memory leaves the default, and the compiler has no memory for the default's candidates either.
TEST_F(ExplainTest, CandidatesThatCannotBeListedAreNoDefault) {
  for (const nsa_miss_policy policy : {NSA_MISS_DEFAULT, NSA_MISS_TUNE, NSA_MISS_BACKGROUND}) {
    const Json told = explainUnder(policy, NSA_EXHAUSTED_COMPILER);
    EXPECT_EQ(told["fails"], true) << told.dump(1);
    EXPECT_EQ(told["would"], "fail: out of memory: the compiler library gave no reason");
    EXPECT_TRUE(told["candidates"].empty());
    EXPECT_NE(told["candidates_trouble"], "");
    EXPECT_FALSE(told.contains("variant"));
  }
  storeNeighbour();
  const Json told = explainUnder(NSA_MISS_TUNE, NSA_EXHAUSTED_COMPILER);
  EXPECT_EQ(told["would"], "serve what is stored for another problem");
  EXPECT_EQ(told["variant"], "neighbour");
}

} // namespace
} // namespace nsa::test::c_api
