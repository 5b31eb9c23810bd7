// An engine tunes in the background while its host captures on a stream that waits for the legacy one: no capture
// breaks, and no candidate is rejected because of one.
#include "cache/kernel_store.h"
#include "runtime/cuda/context.h"
#include "tests/gpu/graph_api.h"
#include "tests/harness/scratch.h"
#include "tests/harness/seed.h"
#include "tests/harness/session.h"

#include <algorithm>
#include <cctype>

namespace nsa::test {
namespace {

class GpuBackgroundCapture : public AttentionTest {};

bool speaksOfCapture(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char letter) { return std::tolower(letter); });
  return text.find("captur") != std::string::npos;
}

TEST_F(GpuBackgroundCapture, CapturesOnABlockingStreamSurviveTheTuner) {
  const cuda::Driver &driver = **cuda::Driver::get();
  cuda::PrimaryContext context(driver, 0);
  ASSERT_TRUE(context.retain().isOk());
  const cuda::ContextScope scope(context);
  ASSERT_TRUE(scope.status().isOk());
  const GraphApi api = GraphApi::open();
  constexpr unsigned kBlocking = 0; // CU_STREAM_DEFAULT
  cuda::Stream stream = nullptr;
  ASSERT_EQ(driver.streamCreate(&stream, kBlocking), cuda::kSuccess);

  // What the host captures was planned before.
  std::mt19937_64 random(freshSeed());
  const AttentionCase shape = plainCase("captured");
  AttentionData data = AttentionData::draw(shape, random);
  Result<Launch> launch = session->prepare(data);
  ASSERT_TRUE(launch) << launch.status().toString();

  const Scratch scratch;
  tools::EngineSettings settings;
  settings.device = kTestDevice;
  settings.cachePath = scratch.file("kernels.db");
  settings.cachePacks = "none";
  settings.missPolicy = NSA_MISS_BACKGROUND;
  settings.tuneBudgetSeconds = 3;
  settings.compileThreads = 4;
  settings.decodeSplits = 4; // `decode_step` is not tuned
  Result<tools::EngineHandle> engine = tools::createEngine(settings);
  ASSERT_TRUE(engine) << engine.status().toString();
  Spec window = shape.spec(), decode = shape.spec();
  decode.op = Operator::kDecode;
  const std::pair<Spec, Maxima> wanted[] = {{window, {1, 512, 512, 512}}, {decode, {4, 4, 1, 4096}}};
  for (const auto &[spec, maxima] : wanted) {
    const Result<tools::PlanHandle> plan = tools::createPlan(engine->get(), spec, maxima, stream);
    ASSERT_TRUE(plan) << plan.status().toString();
  }

  nsa_stats stats = NSA_INIT(nsa_stats);
  nsa_error error{};
  int captures = 0;
  do {
    ASSERT_EQ(api.beginCapture(stream, GraphApi::kCaptureGlobal), cuda::kSuccess);
    Status captured;
    for (int run = 0; run < 20 && captured.isOk(); ++run)
      captured = launch->enqueueOn(stream);
    Graph graph = nullptr;
    ASSERT_EQ(api.endCapture(stream, &graph), cuda::kSuccess) << "capture " << captures << " was broken";
    api.destroyGraph(graph);
    ASSERT_TRUE(captured.isOk()) << captured.toString();
    ++captures;
    ASSERT_EQ(nsa_engine_get_stats(engine->get(), &stats, &error), NSA_OK) << error.message;
  } while (stats.background_pending != 0);
  EXPECT_GT(captures, 100);
  EXPECT_EQ(stats.background_done, std::size(wanted));
  EXPECT_EQ(stats.background_failed, 0u);
  EXPECT_GT(stats.kernels_measured, 0u);
  engine->reset();
  driver.streamDestroy(stream);

  std::string warning;
  const Result<std::unique_ptr<KernelStore>> store =
      KernelStore::open({.path = settings.cachePath, .readOnly = true}, warning);
  ASSERT_TRUE(store) << store.status().toString();
  const Result<std::vector<StoredChoice>> choices = (*store)->listChoices();
  ASSERT_TRUE(choices) << choices.status().toString();
  EXPECT_GT(choices->size(), 1u);
  for (const StoredChoice &choice : *choices)
    for (const Measurement &entry : choice.evidence)
      EXPECT_FALSE(speaksOfCapture(entry.detail)) << choice.problem << ": " << entry.config << ": " << entry.detail;

  ASSERT_TRUE(launch->runInto(data).isOk());
  checkOutputs(data);
}

} // namespace
} // namespace nsa::test
