// Programs of one's own under each miss policy, with fallbacks, leases and pins, tuned in the background, and compared
// with the kernel that defines them.
#include "cache/cache_file.h"
#include "cache/pack_writer.h"
#include "tests/harness/program_fixture.h"
#include "tests/harness/wait_until.h"

#include <mutex>
#include <thread>

namespace nsa::test {
namespace {

// y = 2 x. The first configuration that the compiler lists has the least cost and takes the longest time.
constexpr const char *kTwice = R"(kernel twice

fixed   columns
choice  rounds = 1 | 400, warps = 1 | 2
require cpu ? warps == 1 : warps == 1
cost    1000 - rounds
grid    tile = ceildiv(rows, 16), 1, 1
threads 32 * warps

axis    row = 16, column = 32
tensor  x[row: rows; place: columns], y[row: rows; place: columns]: f32
scalar  rows: i32

let at = tile * 16 + iota(row) below rows
for place in 0 .. columns by column {
  let z = load x[at; place] as f32
  var total: [row, column] = 0
  for i in 0 .. rounds {
    total += z * (2.0 / rounds)
  }
  store y[at; place] = total
}
)";
constexpr int64_t kTwiceRows = 20, kTwiceColumns = 64;

ProgramRequest twice(int64_t rows = kTwiceRows, std::string text = kTwice) {
  return ProgramRequest::ofText(
      std::move(text), {{"dtype", "bf16"}, {"columns", std::to_string(kTwiceColumns)}, {"rows", std::to_string(rows)}});
}

Example twiceCall() {
  const auto count = static_cast<size_t>(kTwiceRows * kTwiceColumns);
  Example example;
  example.of = {"twice", DType::kBf16, {}};
  example.tensors = {
      {"x", DType::kBf16, {kTwiceRows, kTwiceColumns}, false, std::vector<double>(count, 3), kTwiceColumns},
      {"y", DType::kF32, {kTwiceRows, kTwiceColumns}, true, std::vector<double>(count, 6), kTwiceColumns}};
  return example;
}

class ProgramPolicies : public ProgramTest {
protected:
  nsa_stats statsOf(const tools::EngineHandle &engine) const {
    nsa_stats stats = NSA_INIT(nsa_stats);
    EXPECT_EQ(nsa_engine_get_stats(engine.get(), &stats, nullptr), NSA_OK);
    return stats;
  }
  bool settle(const tools::EngineHandle &engine) const {
    return waitUntil([&] { return statsOf(engine).background_pending == 0; });
  }
  ProgramHandle made(const tools::EngineHandle &engine, const ProgramRequest &request = twice()) const {
    Result<ProgramHandle> program = request.create(engine.get(), accelerator().stream());
    EXPECT_TRUE(program) << program.status().toString();
    return program ? std::move(*program) : nullptr;
  }
  nlohmann::json described(const tools::EngineHandle &engine, const ProgramRequest &request = twice()) const {
    const ProgramHandle program = made(engine, request);
    return program ? describeProgram(program.get()) : nlohmann::json();
  }
  Status error(const tools::EngineHandle &engine, const ProgramRequest &request) const {
    return request.create(engine.get(), accelerator().stream()).status();
  }
  std::string action(const tools::EngineHandle &engine, const ProgramRequest &request = twice()) const {
    const Result<nlohmann::json> told = request.explain(engine.get());
    EXPECT_TRUE(told) << told.status().toString();
    return told ? told->value("would", told->dump()) : "";
  }
  void expectRight(const ProgramHandle &program) const {
    ASSERT_TRUE(program);
    Result<ProgramCall> call = ProgramCall::make(accelerator(), program.get(), twiceCall());
    ASSERT_TRUE(call) << call.status().toString();
    const Status status = call->run();
    ASSERT_TRUE(status.isOk()) << status.toString();
    call->expectRight();
  }
  tools::EngineSettings withLog(tools::EngineSettings settings) {
    settings.log = [](void *user, nsa_log_level, const char *tag, const char *message) {
      auto *test = static_cast<ProgramPolicies *>(user);
      std::lock_guard lock(test->mutex);
      test->log.push_back("[" + std::string(tag) + "] " + message);
    };
    settings.logUser = this;
    return settings;
  }
  const std::string database = scratch.file("kernels.db");
  std::mutex mutex;
  std::vector<std::string> log;
};

TEST_F(ProgramPolicies, UnderDefaultTheFirstConfigurationIsCompiledAndStored) {
  const tools::EngineHandle engine = engineOf(settings(database));
  const nlohmann::json first = described(engine);
  EXPECT_EQ(first.value("source", ""), "compiled") << first.dump(2);
  EXPECT_EQ(first.value("config", ""), "rounds=400 warps=1");
  EXPECT_EQ(first.value("step", ""), "compiled");
  EXPECT_FALSE(first.value("tuned", true));
  EXPECT_EQ(statsOf(engine).kernels_measured, 0u);
  EXPECT_EQ(described(engine).value("source", ""), "memory");
  expectRight(made(engine));
  const tools::EngineHandle later = engineOf(settings(database));
  EXPECT_EQ(described(later).value("source", ""), "database");
}

TEST_F(ProgramPolicies, UnderTuneAMissIsTuned) {
  tools::EngineSettings tuning = settings(database, NSA_MISS_TUNE);
  tuning.tuneBudgetSeconds = 30;
  const tools::EngineHandle engine = engineOf(tuning);
  const nlohmann::json first = described(engine);
  EXPECT_EQ(first.value("config", ""), "rounds=1 warps=1") << first.dump(2);
  EXPECT_EQ(first.value("step", ""), "exact");
  EXPECT_TRUE(first.value("tuned", false));
  EXPECT_EQ(statsOf(engine).kernels_measured, 2u);
  expectRight(made(engine));
  // A kernel that was stored without a measurement is tuned, too.
  const tools::EngineHandle untuned = engineOf(settings(scratch.file("other.db")));
  EXPECT_FALSE(described(untuned).value("tuned", true));
  tuning.cachePath = scratch.file("other.db");
  const tools::EngineHandle again = engineOf(tuning);
  EXPECT_TRUE(described(again).value("tuned", false));
}

TEST_F(ProgramPolicies, UnderFailOnlyWhatIsStoredServes) {
  const tools::EngineHandle maker = engineOf(settings(database));
  made(maker);
  const tools::EngineHandle strict = engineOf(settings(database, NSA_MISS_FAIL));
  EXPECT_EQ(described(strict).value("source", ""), "database");
  const Status miss = error(strict, twice().with("columns", "128"));
  EXPECT_EQ(miss.code(), ErrorCode::kCacheMiss);
  EXPECT_NE(miss.error().message.find("; nearest: columns=64 instead of 128; looked in "), std::string::npos)
      << miss.toString();
  EXPECT_EQ(statsOf(strict).kernels_compiled, 0u);
  EXPECT_EQ(statsOf(strict).plans_failed, 1u);
}

// A kernel that was stored for other sizes serves before one is compiled; what may serve is the host's to say.
TEST_F(ProgramPolicies, AKernelOfOtherSizesIsAFallback) {
  const tools::EngineHandle maker = engineOf(settings(database));
  made(maker);
  for (const nsa_miss_policy policy : {NSA_MISS_DEFAULT, NSA_MISS_FAIL}) {
    const tools::EngineHandle engine = engineOf(settings(database, policy));
    const nlohmann::json served = described(engine, twice(1000));
    EXPECT_EQ(served.value("step", ""), "nearest") << served.dump(2);
    EXPECT_EQ(served.value("served_by", ""), "rows=32 instead of 1024");
    expectRight(made(engine, twice(1000)));
  }
  tools::EngineSettings exact = settings(database, NSA_MISS_FAIL);
  exact.fallbacks = "exact";
  const tools::EngineHandle strict = engineOf(exact);
  const Status miss = error(strict, twice(1000));
  EXPECT_EQ(miss.code(), ErrorCode::kCacheMiss) << miss.toString();
  exact.missPolicy = NSA_MISS_DEFAULT;
  const tools::EngineHandle none = engineOf(exact);
  const Status refused = error(none, twice(1000));
  EXPECT_EQ(refused.code(), ErrorCode::kCacheMiss) << refused.toString();
  EXPECT_EQ(refused.error().field, "fallbacks");
}

TEST_F(ProgramPolicies, InTheBackgroundTheNextProgramHasTheWinner) {
  const tools::EngineHandle engine = engineOf(settings(database, NSA_MISS_BACKGROUND));
  const ProgramHandle first = made(engine);
  EXPECT_EQ(describeProgram(first.get()).value("config", ""), "rounds=400 warps=1");
  ASSERT_TRUE(settle(engine));
  EXPECT_EQ(statsOf(engine).background_done, 1u);
  EXPECT_EQ(statsOf(engine).background_failed, 0u);
  const nlohmann::json next = described(engine);
  EXPECT_EQ(next.value("source", ""), "memory") << next.dump(2);
  EXPECT_EQ(next.value("config", ""), "rounds=1 warps=1");
  EXPECT_TRUE(next.value("tuned", false));
  EXPECT_EQ(describeProgram(first.get()).value("config", ""), "rounds=400 warps=1") << "what is held stays as it is";
  expectRight(first);
  expectRight(made(engine));
  // The winner is stored, and another engine has nothing to tune.
  const tools::EngineHandle later = engineOf(settings(database, NSA_MISS_BACKGROUND));
  EXPECT_EQ(described(later).value("source", ""), "database");
  EXPECT_TRUE(described(later).value("tuned", false));
  const nsa_stats stats = statsOf(later);
  EXPECT_EQ(stats.background_pending + stats.background_done + stats.background_failed, 0u);
}

TEST_F(ProgramPolicies, AKernelOfOtherSizesServesWhileItIsTuned) {
  const tools::EngineHandle maker = engineOf(settings(database));
  made(maker);
  const tools::EngineHandle engine = engineOf(settings(database, NSA_MISS_BACKGROUND));
  EXPECT_EQ(described(engine, twice(1000)).value("step", ""), "nearest");
  ASSERT_TRUE(settle(engine));
  const nlohmann::json next = described(engine, twice(1000));
  EXPECT_EQ(next.value("step", ""), "exact") << next.dump(2);
  EXPECT_TRUE(next.value("tuned", false));
}

// What is tuned is the text that was read: the file may change at once, and so may a library beside it.
TEST_F(ProgramPolicies, AFileThatChangesIsTunedAsItWasRead) {
  std::string text = kTwice;
  replaceOnce(text, "2.0 / rounds", "factor(2.0) / rounds");
  replaceOnce(text, "\n\nfixed", "\nimport factors\n\nfixed");
  const std::string library = "library factors\n\nfn factor(x) { return x }\n";
  const std::string path = scratch.write("twice.tile", text);
  scratch.write("library/factors.tile", library);
  const ProgramRequest request = ProgramRequest::ofFile(path, {{"dtype", "bf16"}, {"columns", "64"}, {"rows", "20"}});
  const tools::EngineHandle engine = engineOf(settings("", NSA_MISS_BACKGROUND));
  const ProgramHandle first = made(engine, request);
  scratch.write("twice.tile", "kernel other\n");
  scratch.write("library/factors.tile", "library factors\n");
  ASSERT_TRUE(settle(engine));
  EXPECT_EQ(statsOf(engine).background_done, 1u);
  expectRight(first);
  scratch.write("twice.tile", text);
  scratch.write("library/factors.tile", library);
  EXPECT_TRUE(described(engine, request).value("tuned", false));
}

// What served goes on serving, the reason is logged, and the tuning is not tried again.
TEST_F(ProgramPolicies, AProgramThatCannotBeTunedIsSaidOnce) {
  std::string text = kTwice;
  replaceOnce(text, "x[row: rows;", "x[row;");
  const tools::EngineHandle engine = engineOf(withLog(settings("", NSA_MISS_BACKGROUND)));
  for (int i = 0; i < 2; ++i) {
    const ProgramHandle program = made(engine, twice(kTwiceRows, text));
    ASSERT_TRUE(settle(engine));
    EXPECT_EQ(statsOf(engine).background_failed, 1u);
    expectRight(program);
  }
  std::lock_guard lock(mutex);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_EQ(log[0], "[tuner] tuning in the background: invalid argument: program twice: tensor x = 'row': has no "
                    "extent, so nothing says how large the tensor is (hint: declare it, for example x[row: n])");
}

// What `nsa check` warns of is logged once for each kernel that is compiled, and not where a stored one is taken.
TEST_F(ProgramPolicies, WarningsAreLogged) {
  std::string text = kTwice;
  replaceOnce(text, " below rows", "");
  const std::string warning = "[program] program:14:10: warning: every element of 'row' is stored, in the last tile "
                              "too: nothing bounds this index";
  const tools::EngineHandle engine = engineOf(withLog(settings(database)));
  ASSERT_TRUE(made(engine, twice(kTwiceRows, text)));
  {
    std::lock_guard lock(mutex);
    EXPECT_EQ(log, std::vector{warning});
    log.clear();
  }
  ASSERT_TRUE(made(engine, twice(kTwiceRows, text)));
  const tools::EngineHandle later = engineOf(withLog(settings(database)));
  ASSERT_TRUE(made(later, twice(kTwiceRows, text)));
  const tools::EngineHandle other = engineOf(withLog(settings()));
  ASSERT_TRUE(twice(1024, text).tune(other.get(), 30));
  std::lock_guard lock(mutex);
  EXPECT_EQ(log, std::vector{warning}) << "of the winner of the tuning alone";
}

// An engine that is destroyed ends the tuning; a program that is held runs on.
TEST_F(ProgramPolicies, NothingWaitsForATuningAtTheEnd) {
  tools::EngineHandle engine = engineOf(settings("", NSA_MISS_BACKGROUND));
  const ProgramHandle held = made(engine);
  engine.reset();
  expectRight(held);
}

// Threads of one engine and of another one with the same database share one tuning.
TEST_F(ProgramPolicies, OneCallerTunesForAll) {
  tools::EngineSettings tuning = settings(database, NSA_MISS_TUNE);
  tuning.tuneBudgetSeconds = 30;
  const tools::EngineHandle one = engineOf(tuning), other = engineOf(tuning);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i)
      threads.emplace_back([&, i] { EXPECT_TRUE(described(i % 2 ? one : other).value("tuned", false)); });
  }
  EXPECT_EQ(statsOf(one).kernels_measured + statsOf(other).kernels_measured, 2u);
}

// A pack pins the choices: it serves the programs that it has, and nothing else is tuned.
TEST_F(ProgramPolicies, APinnedPackServes) {
  const std::string pack = scratch.file("kernels.nsapack");
  {
    const tools::EngineHandle maker = engineOf(settings(database));
    const Result<nlohmann::json> report = twice().tune(maker.get(), 30);
    ASSERT_TRUE(report) << report.status().toString();
    Result<CacheFile> file = CacheFile::open(database);
    ASSERT_TRUE(file) << file.status().toString();
    ASSERT_TRUE(writePack(*file, pack, {.tunedOnly = true, .source = "test"}));
  }
  tools::EngineSettings pinned = settings("", NSA_MISS_FAIL);
  pinned.pinPath = pack;
  const tools::EngineHandle engine = engineOf(pinned);
  EXPECT_TRUE(described(engine).value("tuned", false));
  EXPECT_EQ(twice().tune(engine.get(), 1).status().error().rule, "pins the choices, so nothing is tuned");
  // A text that was changed since is another program.
  const Status miss = error(engine, twice(kTwiceRows, std::string(kTwice) + "// changed\n"));
  EXPECT_EQ(miss.code(), ErrorCode::kCacheMiss);
  EXPECT_NE(miss.error().message.find("; there is no kernel of this text of the program twice; looked in "),
            std::string::npos)
      << miss.toString();
}

// The tuned kernel is compared with the first configuration of the program, on the tensors of a call.
TEST_F(ProgramPolicies, AComparisonFindsWhatAConfigurationDoesOtherwise) {
  // The configuration that wins is wrong by 1/1000, which is less than bf16 rounds.
  std::string text = kTwice;
  replaceOnce(text, "store y[at; place] = total", "store y[at; place] = total * (rounds == 1 ? 1.001 : 1)");
  const tools::EngineHandle engine = engineOf(settings());
  const ProgramHandle first = made(engine, twice(kTwiceRows, text));
  const Result<nlohmann::json> report = twice(kTwiceRows, text).tune(engine.get(), 30);
  ASSERT_TRUE(report) << report.status().toString();
  const ProgramHandle tuned = made(engine, twice(kTwiceRows, text));
  const auto compare = [&](const ProgramHandle &program) {
    Result<ProgramCall> call = ProgramCall::make(accelerator(), program.get(), twiceCall());
    EXPECT_TRUE(call) << call.status().toString();
    Result<nlohmann::json> compared = call->compare();
    EXPECT_TRUE(compared) << compared.status().toString();
    call->expectRight(); // and nothing beside the rows of y is written
    return compared ? *compared : nlohmann::json();
  };
  nlohmann::json compared = compare(tuned);
  EXPECT_EQ(compared.value("program", ""), "twice") << compared.dump(2);
  ASSERT_EQ(compared["parts"].size(), 1u) << compared.dump(2);
  nlohmann::json y = compared["parts"][0];
  EXPECT_EQ(y.value("part", ""), "y");
  EXPECT_EQ(y["kernel"].value("config", ""), "rounds=1 warps=1") << y.dump(2);
  EXPECT_EQ(y["definition"].value("config", ""), "rounds=400 warps=1");
  EXPECT_FALSE(y.value("same_kernel", true));
  EXPECT_EQ(y.value("elements", 0), kTwiceRows * kTwiceColumns);
  EXPECT_NEAR(y.value("max_abs", 0.0), 0.006, 1e-4);
  EXPECT_NEAR(y.value("mean_abs", 0.0), 0.006, 1e-4);
  EXPECT_NEAR(y.value("relative_rms", 0.0), 0.001, 1e-5);
  EXPECT_EQ(y.value("unequal_nan", 1), 0);
  compared = compare(first);
  y = compared["parts"][0];
  EXPECT_TRUE(y.value("same_kernel", false)) << y.dump(2);
  EXPECT_EQ(y.value("max_abs", 1.0), 0);
}

// What a program reads of what it stores is the same for both kernels, and what it does not store is equal.
TEST_F(ProgramPolicies, AComparisonKeepsWhatAProgramReads) {
  const std::string text = R"(kernel counted

grid    part = parts, 1, 1
threads 32

axis    e = 16
tensor  counts[i: parts; e]: f32 inout, seen[i: parts + 1]: i32
scalar  parts: i32

let before = load counts[part; iota(e)]
store counts[part; iota(e)] = before + 1
store seen[part] = 7
)";
  const tools::EngineHandle engine = engineOf(settings());
  Example example;
  example.of = {"counted", DType::kF32, {}};
  example.tensors = {{"counts", DType::kF32, {3, 16}, false, std::vector<double>(48, 5), 16},
                     {"seen", DType::kI32, {4}, false, {1, 2, 3, 4}, 4}};
  const ProgramHandle program = made(engine, ProgramRequest::ofText(text, {{"parts", "3"}}));
  ASSERT_TRUE(program);
  Result<ProgramCall> call = ProgramCall::make(accelerator(), program.get(), example);
  ASSERT_TRUE(call) << call.status().toString();
  const Result<nlohmann::json> compared = call->compare();
  ASSERT_TRUE(compared) << compared.status().toString();
  ASSERT_EQ(compared->at("parts").size(), 2u) << compared->dump(2);
  for (const nlohmann::json &part : compared->at("parts")) {
    EXPECT_EQ(part.value("max_abs", 1.0), 0) << part.dump(2);
    EXPECT_EQ(part.value("unequal_nan", 1), 0);
  }
  EXPECT_EQ(compared->at("parts")[1].value("elements", 0), 4);
  // A call without a part.
  Result<ProgramCall> empty = ProgramCall::make(accelerator(), program.get(), example);
  ASSERT_TRUE(empty) << empty.status().toString();
  empty->tensors[0].shape[0] = 0;
  empty->tensors[1].shape[0] = 1;
  const Result<nlohmann::json> nothing = empty->compare();
  ASSERT_TRUE(nothing) << nothing.status().toString();
  EXPECT_EQ(nothing->at("parts")[0].value("elements", 1), 0) << nothing->dump(2);
  EXPECT_EQ(nothing->at("parts")[1].value("elements", 0), 1);
  // Once, by the run of the call.
  example.tensors[0].isOutput = true;
  example.tensors[0].values.assign(48, 6);
  call->expectRight(example);
}

TEST_F(ProgramPolicies, AComparisonNeedsTheCompiler) {
  const tools::EngineHandle maker = engineOf(settings(database));
  made(maker);
  const tools::EngineHandle strict = engineOf(settings(database, NSA_MISS_FAIL));
  const ProgramHandle program = made(strict);
  Result<ProgramCall> call = ProgramCall::make(accelerator(), program.get(), twiceCall());
  ASSERT_TRUE(call) << call.status().toString();
  EXPECT_EQ(call->compare().status().toString(),
            "unavailable: to compare, the kernels that define the results must be compiled, and the miss policy is to "
            "fail (hint: compare with an engine of another miss policy)");
  call->tensors.pop_back();
  EXPECT_EQ(call->compare().status().error().field, "y");
}

TEST_F(ProgramPolicies, ExplainSaysWhatEachPolicyWouldDo) {
  const std::pair<nsa_miss_policy, const char *> actions[] = {{NSA_MISS_DEFAULT, "compile the first candidate"},
                                                              {NSA_MISS_TUNE, "compile and measure candidates"},
                                                              {NSA_MISS_FAIL, "fail with a cache miss"},
                                                              {NSA_MISS_BACKGROUND, "compile the first candidate"}};
  for (const auto &[policy, expected] : actions)
    EXPECT_EQ(action(engineOf(settings("", policy))), expected);
}

} // namespace
} // namespace nsa::test
