// What explain says is what then happens, in states that are drawn at random: the operator and its routes, the contents
// of a database, of a pack or of a pinned file, the miss policy, the allowed fallbacks, thresholds, a forced template,
// a compiler at hand or not. The stored kernels are assembled by hand. In most states the compiler is one whose kernels
// return at once (returning_compiler.cpp); where a tuning measures, it is the real one.
#include "cache/pack_writer.h"
#include "runtime/base/compiler_revision.h"
#include "runtime/engine/choices/routes.h"
#include "tests/harness/seed.h"
#include "tests/unit/runtime/planner_fixture.h"
#include "tests/unit/runtime/stored_kernel.h"

#include <algorithm>
#include <cstdio>
#include <random>
#include <sstream>

namespace nsa {
namespace {

constexpr int kContents = 200, kDailyContents = 60, kLeastContents = 20;
constexpr int kStatesOfOne = 10;
// How a state may end. The full number of states meets all of these.
constexpr const char *kWays[] = {"window: own",
                                 "nsa: own",
                                 "decode: own",
                                 "miss",
                                 "error",
                                 "window: fallback nearest",
                                 "nsa: fallback nearest",
                                 "decode: fallback nearest",
                                 "fallback nearest made again",
                                 "compile the stored configuration again",
                                 "window: compile the first candidate",
                                 "nsa: compile the first candidate",
                                 "decode: compile the first candidate",
                                 "route dense by exact",
                                 "route dense by sel.dense_up_to",
                                 "route selection by sel.dense_up_to",
                                 "splits by rule"};

class DecisionTest : public test::PlannerFixture {
protected:
  using Rows = std::vector<Json>;

  int draw(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random); }
  bool isDrawn(double probability) { return std::bernoulli_distribution(probability)(random); }
  template <typename T> T oneOf(std::initializer_list<T> values) { return values.begin()[draw(int(values.size()))]; }

  // One kernel, the forward pass where it may attend selected blocks as dense attention and where not, and a decode
  // step whose programs share keys.
  void drawRequest() {
    spec.op = oneOf({Operator::kWindow, Operator::kWindow, Operator::kNsa, Operator::kDecode});
    spec.gate = Gate::kValue;
    spec.selCount = 4;
    spec.selBlock = 32;
    maxima = {1, 160, 160, 160};
    if (spec.op == Operator::kNsa)
      maxima = isDrawn(0.5) ? Maxima{1, 128, 128, 128} : maxima;
    if (spec.op == Operator::kDecode)
      maxima = {1, 1, 1, 4096};
  }

  // The explanations of all kernels that it tells of.
  Rows explained(Engine &engine) {
    Result<std::string> text = engine.explain(spec, maxima);
    EXPECT_TRUE(text.isOk()) << text.status().toString();
    const Json json = text ? Json::parse(*text) : Json{{"kernels", Json::array()}};
    return json.contains("kernels") ? json["kernels"].get<Rows>() : Rows{json};
  }

  std::string candidateOf(Operator op) {
    return !hasVariants(op) ? "plain" : isDrawn(0.5) ? "attention" : "row_attention";
  }

  // A row for a kernel of the request or a neighbour, and what may be wrong with its kernel.
  void storeDrawn(KernelStore &store, int number) {
    const std::vector<Step> steps = stepsOf(spec, maxima, isDrawn(0.5) ? routesOf(spec, maxima) : 0);
    const Step &step = steps[size_t(draw(int(steps.size())))];
    Spec other = step.spec;
    Maxima most = step.maxima;
    most.seqlenK = oneOf<int64_t>({1, 1, 1, 2, 8, 32}) * most.seqlenK;
    other.window = oneOf({1, 1, 2}) * other.window;
    const Problem problem = Problem::make(other, most);
    const bool isWhole = !isTuned(other.op); // explain tells of such a kernel only that it is missing
    test::KernelText text{.templateName = candidateOf(other.op),
                          .params = isDrawn(0.15) ? "param i32 moon\n" : "param view sequences int32 2\n",
                          .grid = isDrawn(0.1) ? "max_seqlen_k * 2147483647 ; 1 ; 1" : "1 ; 1 ; 1",
                          .dtype = isDrawn(0.1) ? "bf16" : problem.fixed()["dtype"]};
    Manifest manifest = *Manifest::parse(test::manifestOf(text, other));
    manifest.config["tile"] = oneOf({"16", "64"});
    manifest.evidence["compiler"] = isDrawn(0.2) && !isWhole ? "older" : std::string(compilerRevision());
    const StoredKernel kernel{"content" + std::to_string(number), manifest.serialize(), test::codeOf({0xc3})};
    StoredChoice choice;
    choice.problem = problem.key();
    choice.device = isDrawn(0.75) ? test::cpuDeviceKey() : oneOf<std::string>({"cpu x86-64-v3", "cpu x86-64-v4"});
    choice.content = kernel.content;
    choice.tuned = isDrawn(0.5);
    const Status put = store.put(kernel, &choice);
    ASSERT_TRUE(put.isOk()) << put.toString();
  }

  // Thresholds of the templates of one kernel, of the route to dense attention, and of the programs that share keys.
  std::vector<StoredRoute> routes() {
    const std::string device = test::cpuDeviceKey();
    std::vector<StoredRoute> drawn;
    for (const Step &step : stepsOf(spec, maxima, 0)) {
      if (hasVariants(step.spec.op))
        drawn.push_back({routeFamily(step.spec), device, attentionRoute(step.spec.op), 0, "", {}});
      if (definitionOf(step.spec.op).keys == MetKeys::kListed)
        drawn.push_back({routeFamily(step.spec), device, std::string(kDenseRoute), 0, "", {}});
    }
    if (const std::string name = splitsRoute(spec, maxima); !name.empty())
      drawn.push_back({splitsFamily(spec), device, name, 2, "", {}});
    for (StoredRoute &route : drawn)
      if (route.threshold == 0)
        route.threshold = oneOf<int64_t>({100, 200, StoredRoute::kNever});
    return drawn;
  }

  std::string storeDrawn(const std::string &name) {
    const std::string path = folder.file(name);
    std::string warning;
    auto store = KernelStore::open({.path = path}, warning);
    EXPECT_TRUE(store && warning.empty()) << warning;
    const int most = spec.op == Operator::kWindow ? 5 : 15;
    for (int rows = 1 + draw(most); rows > 0; --rows)
      storeDrawn(**store, ++kernels);
    for (const StoredRoute &route : routes())
      if (isDrawn(0.4))
        EXPECT_TRUE((*store)->putRoute(route).isOk());
    return path;
  }

  void drawOptions(const std::string &pin, const std::string &pack) {
    const bool isPinned = isDrawn(0.2);
    options.pinPath = isPinned ? pin : "";
    options.cachePacks = isDrawn(0.4) ? pack : "none";
    options.missPolicy =
        isPinned ? oneOf({MissPolicy::kFail, MissPolicy::kDefault})
                 : oneOf({MissPolicy::kFail, MissPolicy::kFail, MissPolicy::kDefault, MissPolicy::kBackground});
    options.fallbacks = *FallbackSteps::parse(
        "", oneOf<const char *>({"all", "all", "all", "exact", "nearest", "model,compiled", "architecture",
                                 "nearest,model", "compiled", "nearest,architecture,compiled"}));
    options.compilerPath = isDrawn(0.5) ? NSA_RETURNING_COMPILER : "absent.so"; // which no loader finds
    options.forceVariant = isDrawn(0.15) ? oneOf<std::string>({"attention", "row_attention"}) : "";
    options.ignoreThresholds = isDrawn(0.2);
    options.cpuFeatures = isDrawn(0.1) ? "x86-64-v3" : "";
  }

  // Compares what was told of a kernel with what it has become, and returns what was told.
  std::string compareKernel(const Json &told, const Json &launch) {
    const std::string would = told.value("would", ""), both = told.dump(1) + launch.dump(1);
    const bool isTuning = would == "compile and measure candidates";
    if (isTuning && launch["tuned"] == true) { // any of the candidates may win
      EXPECT_EQ(launch["source"], "compiled") << both;
      EXPECT_EQ(launch["step"], "exact") << both;
      return "measure candidates";
    }
    EXPECT_EQ(launch["template"], told["variant"]) << both;
    EXPECT_EQ(launch["config"], told["config"]) << both;
    if (isTuning) {
      EXPECT_EQ(launch["step"], "compiled") << both;
      return "end before a candidate is measured";
    }
    EXPECT_EQ(launch["step"], told["step"]) << both;
    EXPECT_EQ(launch["tuned"], told["tuned"]) << both;
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

  // Compares what the engine explains with the plan that it then makes, and counts in `seen` what it has said.
  void compareBoth() {
    auto engine = open(*options.missPolicy);
    const Rows told = explained(*engine);
    const Result<PlanPointer> plan = engine->plan(spec, maxima, nullptr);
    std::vector<std::string> failures;
    for (const Json &kernel : told)
      if (kernel["fails"] == true)
        failures.push_back(kernel["would"]);
    const std::string all = Json(told).dump(1);
    ASSERT_EQ(failures.empty(), plan.isOk()) << all << plan.status().toString();
    if (!plan) {
      const bool isMiss = plan.status().code() == ErrorCode::kCacheMiss;
      EXPECT_EQ(std::ranges::count(failures, isMiss ? "fail with a cache miss" : "fail: " + plan.status().toString()) >
                    0,
                true)
          << all << plan.status().toString();
      ++seen[isMiss ? "miss" : "error"];
      return;
    }
    const Json made = Json::parse((*plan)->describe());
    std::vector<Json> launches;
    std::istringstream problems(made["problem"].get<std::string>());
    for (const Json &launch : made["launches"]) {
      std::string problem;
      std::getline(problems >> std::ws, problem, ';');
      if (isTuned(launch["operator"].get<std::string>())) {
        launches.push_back(launch);
        launches.back()["problem"] = problem;
      }
    }
    ASSERT_EQ(launches.size(), told.size()) << all << made.dump(1);
    bool tunes = false;
    for (size_t i = 0; i < told.size(); ++i) {
      EXPECT_EQ(launches[i]["problem"], told[i]["problem"]);
      const std::string operatorOf(operatorName(spec.op));
      const std::string way = compareKernel(told[i], launches[i]);
      ++seen[way];
      ++seen[operatorOf + ": " + way];
      if (told[i].contains("route"))
        ++seen["route " + told[i]["route"]["name"].get<std::string>() + " by " +
               told[i]["route"]["source"].get<std::string>()];
      if (told[i].contains("splits"))
        ++seen["splits by " + told[i]["splits"]["source"].get<std::string>()];
      tunes = tunes || told[i]["tunes_in_background"] == true;
    }
    const Counters &counters = engine->counters();
    EXPECT_EQ(tunes, counters.backgroundPending + counters.backgroundDone + counters.backgroundFailed != 0) << all;
  }

  void removeFiles(const std::string &path) const {
    for (const char *suffix : {"", "-wal", "-shm", "-journal"})
      std::filesystem::remove(path + suffix);
  }

  const uint64_t seed = test::freshSeed();
  std::mt19937_64 random{seed};
  std::map<std::string, int> seen;
  int kernels = 0;
};

TEST_F(DecisionTest, ExplainSaysWhatThenHappens) {
  options.compileThreads = options.cpuThreads = 1;
  ASSERT_EQ(setenv("RETURNING_COMPILER_REVISION", std::string(compilerRevision()).c_str(), 1), 0);
  const int most = std::max(test::drawnCases(kContents, kDailyContents), kLeastContents);
  // A run may draw few contents that lead one way. Then it draws more.
  const auto isEnough = [&](int contents) {
    const bool isMet = most < kContents || std::ranges::all_of(kWays, [&](const char *way) { return seen[way] > 0; });
    return contents >= most && (isMet || contents >= 3 * most);
  };
  for (int contents = 0; !isEnough(contents); ++contents) {
    drawRequest();
    const std::string stored = storeDrawn("stored.db"), pin = storeDrawn("pin.db"), packed = storeDrawn("packed.db");
    const std::string pack = folder.file("kernels.nsapack");
    {
      Result<CacheFile> from = CacheFile::open(packed);
      ASSERT_TRUE(from) << from.status().toString();
      const Result<PackReport> report = writePack(*from, pack, {.source = "test"});
      ASSERT_TRUE(report) << report.status().toString();
    }
    for (int state = 0; state < kStatesOfOne; ++state) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", contents " + std::to_string(contents) + ", state " +
                   std::to_string(state));
      drawOptions(pin, pack);
      options.cachePath = folder.file("kernels.db");
      std::filesystem::copy_file(stored, options.cachePath);
      compareBoth();
      removeFiles(options.cachePath);
      if (HasFailure())
        return;
    }
    for (const std::string &file : {stored, pin, packed, pack})
      removeFiles(file);
  }
  for (const auto &[way, count] : seen)
    std::printf("%6d %s\n", count, way.c_str());
  if (most < kContents)
    return;
  for (const char *way : kWays)
    EXPECT_GT(seen[way], 0) << way;
  if (hostCpuFeatures() == "x86-64-v4") // other processors have no older level
    EXPECT_GT(seen["fallback architecture"], 0);
}

// A tuning, which measures or whose budget ends before.
TEST_F(DecisionTest, ExplainSaysWhatThenIsMeasured) {
  options.templateDir = copyTemplates();
  templates.remove("cuda");
  write("row_attention", planted("row_attention", "1000000000"));
  spec.queryHeads = spec.kvHeads = 1;
  spec.qkDim = spec.vDim = 16;
  maxima = {1, 32, 32, 32};
  for (const double budget : {1e-9, 20.0})
    for (const char *forced : {"", "row_attention"})
      for (const MissPolicy later : {MissPolicy::kTune, MissPolicy::kFail}) {
        SCOPED_TRACE(std::to_string(budget) + " s, forced " + forced + ", then " + std::string(missPolicyName(later)));
        options.missPolicy = MissPolicy::kTune;
        options.tuneBudgetSeconds = budget;
        options.forceVariant = forced;
        options.cachePath = folder.file("kernels.db");
        compareBoth();
        options.missPolicy = later;
        compareBoth(); // with what is stored now
        removeFiles(options.cachePath);
        if (HasFailure())
          return;
      }
  for (const char *way : {"measure candidates", "end before a candidate is measured", "own"})
    EXPECT_GT(seen[way], 0) << way;
}

} // namespace
} // namespace nsa
