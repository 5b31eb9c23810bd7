// The record of what a program asks for has each plan once. Its lines are whole even when other processes write too, a
// full disk loses nothing, and a file of another user is not written.
#include "runtime/base/config_text.h"
#include "runtime/engine/plan/plan_record.h"
#include "tests/unit/runtime/c_api_fixture.h"
#include "tests/unit/runtime/counted_calls.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace nsa::test::c_api {
namespace {

std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> lines;
  std::stringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}

class RecordTest : public testing::Test {
protected:
  // Specs of different numbers have no kernels in common.
  Spec specOf(int32_t number) const {
    Spec spec;
    spec.queryHeads = 4;
    spec.kvHeads = 2;
    spec.qkDim = 8 * number;
    spec.vDim = 16;
    spec.window = 7;
    return spec;
  }
  // What the plan of a call is in the record.
  static std::string lineOf(const AnyCall &call) { return planText(call.internalSpec(), call.internalMaxima()); }
  Engine engineWith(const std::string &path, nsa_miss_policy policy = NSA_MISS_FAIL) {
    return Engine(cache, [&](nsa_engine_options &options) {
      options.record_path = path.c_str();
      options.miss_policy = policy;
      options.compiler_path = "absent.so"; // which no loader finds
    });
  }
  std::vector<std::string> recorded() const { return linesOf(readFile(record)); }
  void expectRefused(const std::string &path, const std::string &reason) {
    const Result<std::unique_ptr<PlanRecord>> opened = PlanRecord::open("record_path", path);
    ASSERT_FALSE(opened) << path;
    EXPECT_EQ(opened.status().error().field, "record_path");
    EXPECT_EQ(opened.status().error().value, path);
    EXPECT_NE(opened.status().error().rule.find(reason), std::string::npos) << opened.status().toString();
  }

  Scratch folder;
  const std::string cache = folder.file("kernels.db"), record = folder.file("plans.jsonl");
  const Maxima maxima{2, 40, 20, 40};
};

TEST_F(RecordTest, HoldsWhatWasAskedForInFull) {
  Spec spec;
  spec.op = Operator::kDecode;
  spec.dtype = DType::kF16;
  spec.layout = Layout::kPacked;
  spec.queryHeads = 64;
  spec.kvHeads = 4;
  spec.qkDim = 192;
  spec.vDim = 128;
  spec.window = 1024;
  spec.scale = 0.1f;
  spec.cmpBlock = 64;
  spec.cmpStride = 32;
  spec.cmpKind = CmpKind::kMlp;
  spec.mlpHidden = 256;
  spec.mlpActivation = Activation::kSilu;
  spec.selBlock = 128;
  spec.selCount = 8;
  spec.initBlocks = 2;
  spec.localBlocks = 3;
  spec.gate = Gate::kSigmoid;
  spec.gatePerGroup = true;
  spec.branches = kBranchCmp | kBranchSel;
  spec.pageSize = 256;
  EXPECT_EQ(planText(spec, {64, 100, 2, 65536}),
            R"({"op":"decode","batch":64,"seqlen_q":2,"seqlen_k":65536,"tokens_q":100,"config":{"dtype":"fp16",)"
            R"("query_heads":64,"kv_heads":4,"qk_dim":192,"scale":0.1,"v_dim":128,"layout":"packed","window":1024,)"
            R"("cmp_block":64,"cmp_stride":32,"cmp_kind":"mlp","mlp_hidden":256,"mlp_activation":"silu",)"
            R"("sel_block":128,"sel_count":8,"init_blocks":2,"local_blocks":3,"gate":"sigmoid",)"
            R"("gate_per_group":true,"branches":["cmp","sel"],"page_size":256}})");
  // What an operator does not read says nothing of what is asked.
  Spec dense = spec;
  dense.op = Operator::kDense;
  EXPECT_EQ(configText(dense),
            R"({"dtype":"fp16","query_heads":64,"kv_heads":4,"qk_dim":192,"scale":0.1,"v_dim":128,"layout":"packed"})");
}

TEST_F(RecordTest, AnEngineAppendsEachPlanOnce) {
  Call stored(NSA_LAYOUT_DENSE), missing(NSA_LAYOUT_PACKED);
  storeKernel(cache, stored.internalSpec(), stored.internalMaxima(), {}, countingCode());
  {
    Engine engine = engineWith(record);
    ASSERT_EQ(engine.status, NSA_OK) << engine.error.message;
    EXPECT_EQ(readFile(record), "") << "the file is made when the engine opens";
    for (int again = 0; again < 2; ++again) {
      EXPECT_EQ(Plan(engine, stored).status, NSA_OK);
      EXPECT_EQ(Plan(engine, missing).status, NSA_CACHE_MISS) << "a miss is what is to be tuned";
    }
    EXPECT_EQ(recorded(), (std::vector{lineOf(stored), lineOf(missing)}));
    stored.spec.query_heads = 5;
    EXPECT_EQ(Plan(engine, stored).status, NSA_INVALID_ARGUMENT) << "of which there is nothing to tune";
  }
  EXPECT_EQ(recorded().size(), 2u);
  // Another engine adds to the file, also what lacks a compiler.
  missing.spec.window = 1;
  Engine engine = engineWith(record, NSA_MISS_DEFAULT);
  EXPECT_EQ(Plan(engine, missing).status, NSA_UNAVAILABLE);
  EXPECT_EQ(recorded().back(), lineOf(missing));
  EXPECT_EQ(recorded().size(), 3u);
  EXPECT_TRUE(engine.log.empty()) << engine.log.front();
}

TEST_F(RecordTest, TheVariableNamesTheFileAndNoneSwitchesItOff) {
  Call call(NSA_LAYOUT_DENSE);
  setenv("NSA_RECORD", record.c_str(), 1);
  {
    Engine without = engineWith("none");
    EXPECT_EQ(Plan(without, call).status, NSA_CACHE_MISS);
  }
  EXPECT_FALSE(std::filesystem::exists(record));
  {
    Engine engine(cache);
    EXPECT_EQ(Plan(engine, call).status, NSA_CACHE_MISS);
  }
  EXPECT_EQ(recorded(), std::vector{lineOf(call)});
  const std::string absent = folder.file("absent/plans.jsonl");
  setenv("NSA_RECORD", absent.c_str(), 1);
  Engine refused(cache);
  unsetenv("NSA_RECORD");
  EXPECT_EQ(refused.status, NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(refused.error.field, "NSA_RECORD") << "whose value it is";
  EXPECT_EQ(refused.error.value, absent);
  EXPECT_NE(std::string(refused.error.rule).find("No such file or directory"), std::string::npos);
  EXPECT_NE(std::string(refused.error.hint).find("NSA_RECORD"), std::string::npos);
}

TEST_F(RecordTest, APlanFromMemoryCostsNothing) {
  Call call(NSA_LAYOUT_DENSE);
  storeKernel(cache, call.internalSpec(), call.internalMaxima(), {}, countingCode());
  std::map<bool, std::pair<size_t, size_t>> cost;
  for (const bool records : {false, true}) {
    Engine engine = engineWith(records ? record : "none");
    ASSERT_EQ(Plan(engine, call).status, NSA_OK);
    // A plan of this thread is in the engine's pool from here on.
    ASSERT_EQ(Plan(engine, call).status, NSA_OK);
    nsa_plan *plan = nullptr;
    const size_t allocationsBefore = allocations, locksBefore = locks;
    ASSERT_EQ(nsa_plan_create_with(engine.handle, &call.spec, &call.maxima, nullptr, nullptr, &plan, nullptr), NSA_OK);
    cost[records] = {allocations - allocationsBefore, locks - locksBefore};
    nsa_plan_destroy(plan);
  }
  EXPECT_EQ(cost[true], cost[false]);
  EXPECT_EQ(recorded().size(), 1u);
}

// Lengths of one bucket have the same kernels: one line is enough, also where each plan misses.
TEST_F(RecordTest, GrowsWithBucketsAndNotWithLengths) {
  Call call(NSA_LAYOUT_DENSE);
  Engine engine = engineWith(record);
  std::vector<std::string> wanted;
  for (int64_t length = 33; length <= 300; ++length) {
    call.maxima.max_seqlen_k = length;
    EXPECT_EQ(Plan(engine, call).status, NSA_CACHE_MISS);
    if (length == 33 || length == 65 || length == 129 || length == 257)
      wanted.push_back(lineOf(call));
  }
  EXPECT_EQ(recorded(), wanted);
}

// Threads, engines and processes write to one file: each line is whole.
TEST_F(RecordTest, ManyMayWriteAtOnce) {
  constexpr int kProcesses = 3, kThreads = 4;
  constexpr int32_t kPlans = 40;
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    children.push_back(fork());
    if (children.back() != 0)
      continue;
    alarm(60);
    std::atomic<int> failed = 0;
    {
      const Result<std::unique_ptr<PlanRecord>> opened = PlanRecord::open("record_path", record);
      std::vector<std::thread> threads;
      for (int thread = 0; thread < kThreads && opened; ++thread)
        threads.emplace_back([&, thread] {
          for (int32_t number = 1; number <= kPlans; ++number)
            failed += !(*opened)->add(specOf(1000 * process + 100 * (thread / 2) + number), maxima).isOk();
        });
      for (std::thread &thread : threads)
        thread.join();
      failed += !opened;
    }
    _exit(failed);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  std::multiset<std::string> wanted;
  for (int process = 0; process < kProcesses; ++process)
    for (int pair = 0; pair < kThreads / 2; ++pair)
      for (int32_t number = 1; number <= kPlans; ++number)
        wanted.insert(planText(specOf(1000 * process + 100 * pair + number), maxima));
  std::vector<std::string> lines = recorded();
  std::erase(lines, ""); // a writer that saw another one's half line
  EXPECT_EQ(std::multiset<std::string>(lines.begin(), lines.end()), wanted);
}

// The child of a fork opens the record and the database once more, although the host has left the folder that their
// paths began in.
TEST_F(RecordTest, AForkGoesOnWithTheSameFiles) {
  const std::filesystem::path before = std::filesystem::current_path();
  Call call(NSA_LAYOUT_DENSE), other(NSA_LAYOUT_PACKED), stored(NSA_LAYOUT_DENSE);
  stored.spec.qk_dim = 16;
  storeKernel(cache, stored.internalSpec(), stored.internalMaxima(), {}, countingCode());
  std::filesystem::current_path(folder.path());
  Engine engine("kernels.db", [&](nsa_engine_options &options) {
    options.record_path = "plans.jsonl";
    options.miss_policy = NSA_MISS_FAIL;
  });
  std::filesystem::current_path("/");
  ASSERT_EQ(engine.status, NSA_OK) << engine.error.message;
  EXPECT_EQ(Plan(engine, call).status, NSA_CACHE_MISS);
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    _exit(Plan(engine, stored).status == NSA_OK ? Plan(engine, other).status : 99);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == NSA_CACHE_MISS) << status;
  EXPECT_EQ(recorded(), (std::vector{lineOf(call), lineOf(stored), lineOf(other)}));
  std::filesystem::current_path(before);
}

TEST_F(RecordTest, AFullDiskLosesNothing) {
  const Result<std::unique_ptr<PlanRecord>> opened = PlanRecord::open("record_path", record);
  ASSERT_TRUE(opened) << opened.status().toString();
  ASSERT_TRUE((*opened)->add(specOf(1), maxima).isOk());
  const std::string first = planText(specOf(1), maxima), second = planText(specOf(2), maxima),
                    third = planText(specOf(3), maxima);
  // Room for half a line more.
  rlimit usual{}, small{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &usual), 0);
  small = usual;
  small.rlim_cur = first.size() * 3 / 2;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status cut = (*opened)->add(specOf(2), maxima), none = (*opened)->add(specOf(3), maxima);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &usual), 0);
  ASSERT_FALSE(cut.isOk());
  EXPECT_NE(cut.toString().find("cannot append to the plan record '" + record + "': "), std::string::npos)
      << cut.toString();
  EXPECT_NE(cut.toString().find("; 1 plan waits for the next attempt"), std::string::npos) << cut.toString();
  ASSERT_FALSE(none.isOk());
  EXPECT_NE(none.toString().find("; 2 plans wait"), std::string::npos) << none.toString();
  EXPECT_FALSE(readFile(record).ends_with("\n")) << "the test has no half line";
  ASSERT_TRUE((*opened)->flush().isOk());
  const std::vector<std::string> lines = recorded();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], first);
  EXPECT_TRUE(second.starts_with(lines[1]) && lines[1].size() < second.size()) << lines[1];
  EXPECT_EQ(lines[2], second);
  EXPECT_EQ(lines[3], third);
  ASSERT_TRUE((*opened)->add(specOf(2), maxima).isOk());
  EXPECT_EQ(recorded().size(), 4u);
}

// A file that went away while the engine works is a warning; plans are made all the same, and the last attempt comes
// when the engine ends.
TEST_F(RecordTest, AFileThatCannotBeWrittenIsAWarning) {
  Call call(NSA_LAYOUT_DENSE), other(NSA_LAYOUT_PACKED);
  storeKernel(cache, call.internalSpec(), call.internalMaxima(), {}, countingCode());
  {
    Engine engine = engineWith(record);
    std::filesystem::remove(record);
    std::filesystem::create_directory(record);
    EXPECT_EQ(Plan(engine, call).status, NSA_OK);
    EXPECT_EQ(Plan(engine, other).status, NSA_CACHE_MISS);
    ASSERT_EQ(engine.log.size(), 2u);
    EXPECT_EQ(engine.log[1], "record: cannot append to the plan record '" + record +
                                 "': Is a directory; 2 plans wait for the next attempt");
    std::filesystem::remove(record);
  }
  EXPECT_EQ(recorded(), (std::vector{lineOf(call), lineOf(other)}));
  // A record that was moved away goes on as a new one.
  std::vector<std::string> log;
  {
    Engine engine = engineWith(record);
    EXPECT_EQ(Plan(engine, call).status, NSA_OK);
    std::filesystem::rename(record, record + ".1");
    EXPECT_EQ(Plan(engine, other).status, NSA_CACHE_MISS);
    EXPECT_TRUE(engine.log.empty());
  }
  EXPECT_EQ(recorded(), std::vector{lineOf(other)});
}

TEST_F(RecordTest, WhatIsNoFileOfThisUsersIsRefused) {
  expectRefused(folder.file("absent/plans.jsonl"), "No such file or directory");
  expectRefused(folder.path(), "Is a directory");
  const std::string target = folder.write("target", "untouched");
  std::filesystem::create_symlink(target, folder.file("link"));
  expectRefused(folder.file("link"), "it is a link");
  std::filesystem::create_symlink(folder.file("made"), folder.file("dangling"));
  expectRefused(folder.file("dangling"), "it is a link");
  EXPECT_FALSE(std::filesystem::exists(folder.file("made")));
  std::filesystem::create_hard_link(target, folder.file("second"));
  expectRefused(folder.file("second"), "it has a second name");
  ASSERT_EQ(mkfifo(folder.file("pipe").c_str(), 0600), 0);
  expectRefused(folder.file("pipe"), "it is not a regular file");
  expectRefused("/dev/null", "it is not a regular file");
  EXPECT_EQ(readFile(target), "untouched");

  // What another process puts there later is looked at once more.
  const Result<std::unique_ptr<PlanRecord>> opened = PlanRecord::open("record_path", record);
  ASSERT_TRUE(opened) << opened.status().toString();
  std::filesystem::remove(record);
  std::filesystem::create_symlink(target, record);
  EXPECT_NE((*opened)->add(specOf(1), maxima).toString().find("it is a link"), std::string::npos);
  EXPECT_EQ(readFile(target), "untouched");
}

TEST_F(RecordTest, AFileOfAnotherUserIsRefused) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(chown(folder.write("foreign", "").c_str(), 12345, 12345), 0);
  expectRefused(folder.file("foreign"), "it belongs to another user (uid 12345)");
}

} // namespace
} // namespace nsa::test::c_api
