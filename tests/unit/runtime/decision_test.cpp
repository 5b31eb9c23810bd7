// What explain says is what then happens, in states that are drawn at random: the contents of a database, of a pack or
// of a pinned file, the miss policy, the allowed fallbacks, thresholds, a forced template, a compiler at hand or not.
// The stored kernels are assembled by hand, and the compiler is the real one.
#include "cache/pack_writer.h"
#include "runtime/base/compiler_revision.h"
#include "runtime/engine/choices/routes.h"
#include "tests/unit/runtime/planner_fixture.h"
#include "tests/unit/runtime/stored_kernel.h"

#include <random>

namespace nsa {
namespace {

constexpr uint32_t kSeed = 20;
// Under a sanitizer each state takes several times as long; the plain build draws all of them.
#if defined(__SANITIZE_ADDRESS__) || (defined(__has_feature) && __has_feature(address_sanitizer))
constexpr int kContents = 20;
#else
constexpr int kContents = 200;
#endif
constexpr int kStatesOfOne = 10;

class DecisionTest : public test::PlannerFixture {
protected:
  DecisionTest() {
    options.templateDir = copyTemplates();
    templates.remove("cuda");
    write("row_attention", planted("row_attention", "1000000000"));
    maxima = {1, 160, 160, 160};
    options.tuneBudgetSeconds = 1e-9; // a tuning ends before it has measured
    options.compileThreads = 1;
    const Json empty = explained(*open(MissPolicy::kDefault));
    device = empty["device"];
    for (const Json &candidate : empty["candidates"])
      candidates.push_back({candidate["template"], candidate["config"], candidate["predicted_cost"]});
    EXPECT_EQ(candidates.size(), 8u);
  }

  int draw(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random); }
  bool isDrawn(double probability) { return std::bernoulli_distribution(probability)(random); }
  template <typename T> T oneOf(std::initializer_list<T> values) { return values.begin()[draw(int(values.size()))]; }

  Json explained(Engine &engine) {
    Result<std::string> text = engine.explain(spec, maxima);
    EXPECT_TRUE(text.isOk()) << text.status().toString();
    return text ? Json::parse(*text) : Json();
  }

  // A row for this problem or a neighbour, and what may be wrong with its kernel.
  void storeDrawn(KernelStore &store, int number) {
    Spec other = spec;
    Maxima most = maxima;
    most.seqlenK = oneOf<int64_t>({160, 160, 160, 300, 1000, 4000});
    other.window = oneOf({24, 24, 60});
    const Candidate &candidate = candidates[size_t(draw(int(candidates.size())))];
    test::KernelText text{.templateName = candidate.templateName,
                          .params = isDrawn(0.15) ? "param i32 moon\n" : "param view out fp32 3\n",
                          .grid = isDrawn(0.1) ? "max_seqlen_k * 2147483647 ; 1 ; 1" : "1 ; 1 ; 1",
                          .dtype = isDrawn(0.1) ? "bf16" : "fp32"};
    Manifest manifest = *Manifest::parse(test::manifestOf(text, other));
    manifest.config = *parseValues(candidate.config);
    manifest.evidence["compiler"] = isDrawn(0.2) ? "older" : std::string(compilerRevision());
    const StoredKernel kernel{"content" + std::to_string(number), manifest.serialize(), test::countingCode()};
    StoredChoice choice;
    choice.problem = Problem::make(other, most).key();
    const std::string templatesDigest = device.substr(device.find(" templates="));
    choice.device = isDrawn(0.75) ? device : oneOf<std::string>({"cpu x86-64-v3", "cpu x86-64-v4"}) + templatesDigest;
    choice.content = kernel.content;
    choice.tuned = isDrawn(0.5);
    const Status put = store.put(kernel, &choice);
    ASSERT_TRUE(put.isOk()) << put.toString();
  }
  std::string storeDrawn(const std::string &name) {
    const std::string path = folder.file(name);
    std::string warning;
    auto store = KernelStore::open({.path = path}, warning);
    EXPECT_TRUE(store && warning.empty()) << warning;
    for (int rows = 1 + draw(5); rows > 0; --rows)
      storeDrawn(**store, ++kernels);
    if (isDrawn(0.4)) {
      const auto threshold = oneOf<int64_t>({100, 200, StoredRoute::kNever});
      EXPECT_TRUE((*store)->putRoute({routeFamily(spec), device, attentionRoute(spec.op), threshold, "", {}}).isOk());
    }
    return path;
  }

  void drawOptions(const std::string &pin, const std::string &pack) {
    const bool isPinned = isDrawn(0.2);
    options.pinPath = isPinned ? pin : "";
    options.cachePacks = isDrawn(0.4) ? pack : "none";
    options.missPolicy = isPinned ? oneOf({MissPolicy::kFail, MissPolicy::kDefault})
                                  : oneOf({MissPolicy::kFail, MissPolicy::kFail, MissPolicy::kDefault,
                                           MissPolicy::kTune, MissPolicy::kBackground});
    options.fallbacks = *FallbackSteps::parse(
        "", oneOf<const char *>({"all", "all", "all", "exact", "nearest", "model,compiled", "architecture",
                                 "nearest,model", "compiled", "nearest,architecture,compiled"}));
    if (options.missPolicy == MissPolicy::kTune && !options.fallbacks->allows(FallbackStep::kCompiled))
      options.fallbacks = FallbackSteps::all(); // else the short budget is an error, which no stored row tells
    options.compilerPath = isDrawn(0.5) ? NSA_COMPILER_LIBRARY : "absent.so"; // which no loader finds
    options.forceVariant = isDrawn(0.15) ? oneOf<std::string>({"attention", "row_attention"}) : "";
    options.ignoreThresholds = isDrawn(0.2);
    options.cpuFeatures = isDrawn(0.1) ? "x86-64-v3" : "";
  }

  // Compares what the engine explains with the plan that it then makes, and returns what it has said.
  std::string compareBoth() {
    auto engine = open(*options.missPolicy);
    const Json told = explained(*engine);
    const std::string would = told.value("would", "");
    const Result<PlanPointer> plan = engine->plan(spec, maxima, nullptr);
    EXPECT_EQ(told["fails"], !plan.isOk()) << told.dump(1) << plan.status().toString();
    if (!plan) {
      EXPECT_EQ(would, plan.status().code() == ErrorCode::kCacheMiss ? "fail with a cache miss"
                                                                     : "fail: " + plan.status().toString());
      return plan.status().code() == ErrorCode::kCacheMiss ? "miss" : "error";
    }
    const Json made = Json::parse((*plan)->describe());
    const Json &launch = made["launches"][0];
    const std::string both = told.dump(1) + made.dump(1);
    const Counters &counters = engine->counters();
    EXPECT_EQ(launch["template"], told["variant"]) << both;
    EXPECT_EQ(launch["config"], told["config"]) << both;
    const bool isTuning = would == "compile and measure candidates";
    EXPECT_EQ(launch["step"], isTuning ? Json("compiled") : told["step"]) << both;
    EXPECT_EQ(made["tuned"], told["tuned"]) << both;
    EXPECT_EQ(told["tunes_in_background"],
              counters.backgroundPending + counters.backgroundDone + counters.backgroundFailed != 0)
        << both;
    if (told.contains("served_by")) {
      const bool isMade = launch["source"] == "compiled"; // again, as the kernel is of another compiler
      EXPECT_EQ(would, "serve what is stored for another problem") << both;
      EXPECT_EQ(told["why"], "stored for " + launch["served_by"].get<std::string>()) << both;
      EXPECT_TRUE(isMade || launch["source"] == (told["served_by"]["layer"] == 0 ? "database" : "pack")) << both;
      EXPECT_EQ(launch["content"] == told["served_by"]["content"], !isMade) << both;
      return "fallback " + launch["step"].get<std::string>() + (isMade ? " made again" : "");
    }
    EXPECT_EQ(launch["served_by"], "") << both;
    if (would.starts_with("run what the ")) {
      EXPECT_EQ(would, "run what the " + launch["source"].get<std::string>() + " holds") << both;
      EXPECT_EQ(launch["content"], told["database"]["content"]) << both;
      return "own";
    }
    EXPECT_EQ(launch["source"], "compiled") << both;
    return would;
  }

  std::mt19937 random{kSeed};
  std::string device;
  std::vector<Candidate> candidates;
  int kernels = 0;
};

TEST_F(DecisionTest, ExplainSaysWhatThenHappens) {
  std::map<std::string, int> seen;
  for (int contents = 0; contents < kContents; ++contents) {
    const std::string stored = storeDrawn("stored.db"), pin = storeDrawn("pin.db"), packed = storeDrawn("packed.db");
    const std::string pack = folder.file("kernels.nsapack");
    {
      Result<CacheFile> from = CacheFile::open(packed);
      ASSERT_TRUE(from) << from.status().toString();
      const Result<PackReport> report = writePack(*from, pack, {.source = "test"});
      ASSERT_TRUE(report) << report.status().toString();
    }
    for (int state = 0; state < kStatesOfOne; ++state) {
      SCOPED_TRACE("seed " + std::to_string(kSeed) + ", contents " + std::to_string(contents) + ", state " +
                   std::to_string(state));
      drawOptions(pin, pack);
      options.cachePath = folder.file("kernels.db");
      std::filesystem::copy_file(stored, options.cachePath);
      ++seen[compareBoth()];
      for (const char *suffix : {"", "-wal", "-shm", "-journal"})
        std::filesystem::remove(options.cachePath + suffix);
      if (HasFailure())
        return;
    }
    for (const std::string &file : {stored, pin, packed, pack})
      for (const char *suffix : {"", "-wal", "-shm"})
        std::filesystem::remove(file + suffix);
  }
  if (kContents < 200)
    return;
  // Each way to end was met.
  for (const char *way :
       {"own", "miss", "error", "fallback nearest", "fallback nearest made again",
        "compile the stored configuration again", "compile the first candidate", "compile and measure candidates"})
    EXPECT_GT(seen[way], 5) << way;
  if (hostCpuFeatures() == "x86-64-v4") // other processors have no older level
    EXPECT_GT(seen["fallback architecture"], 5);
}

} // namespace
} // namespace nsa
