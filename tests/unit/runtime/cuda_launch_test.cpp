// The road to a launch on a GPU, against a driver that computes nothing: what planning and running ask of the driver,
// how a kernel's report reaches the host, captures, and forks.
#include "nsa/nsa.h"
#include "tests/harness/scratch.h"
#include "tests/unit/runtime/counted_calls.h"
#include "tests/unit/runtime/fake_gpu.h"
#include "tests/unit/runtime/stored_kernel.h"

#include <atomic>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace nsa;
using test::allocations, test::locks;

namespace {

class CudaLaunch : public testing::Test {
protected:
  void SetUp() override {
    spec.op = NSA_OP_WINDOW;
    spec.query_heads = 4;
    spec.kv_heads = 2;
    spec.qk_dim = spec.v_dim = 8;
    spec.window = 16;
    maxima.max_batch = 2;
    maxima.max_seqlen_q = maxima.max_seqlen_k = 32;
    const nsa_name names[] = {NSA_Q, NSA_K, NSA_V, NSA_OUT};
    for (size_t i = 0; i < 4; ++i) {
      const int64_t heads = names[i] == NSA_Q || names[i] == NSA_OUT ? 4 : 2;
      const int64_t shape[] = {2, 32, heads, 8};
      tensors[i] = NSA_INIT(nsa_tensor);
      tensors[i].data = reinterpret_cast<void *>(uintptr_t{0x10000} * (i + 1)); // never read
      tensors[i].dtype = NSA_BF16;
      tensors[i].rank = 4;
      int64_t stride = 1;
      for (size_t axis = 4; axis-- > 0; stride *= shape[axis]) {
        tensors[i].shape[axis] = shape[axis];
        tensors[i].strides[axis] = stride;
      }
      bindings[i] = {names[i], &tensors[i]};
    }
    store();
    const nsa_engine_options options = test::storedKernelOptions("cuda:0", cache);
    ASSERT_EQ(nsa_engine_create(&options, &engine, &error), NSA_OK) << error.message;
  }
  void TearDown() override { nsa_engine_destroy(engine); }

  void store() { storeAs(NSA_FAKE_GPU_KEY, "sm_90a", true); }
  void storeAs(const std::string &device, const std::string &target, bool tuned) const {
    store(device, {.params = "param view status int32 1\nparam view out bf16 3\n", .target = target}, tuned);
  }
  void store(const std::string &device, const test::KernelText &text, bool tuned) const {
    Spec internal;
    internal.queryHeads = 4;
    internal.kvHeads = 2;
    internal.qkDim = internal.vDim = 8;
    internal.window = 16;
    std::string warning;
    Result<std::unique_ptr<KernelStore>> to = KernelStore::open({.path = cache, .readOnly = false}, warning);
    ASSERT_TRUE(to.isOk()) << to.status().toString();
    StoredKernel kernel{"content of " + device, test::manifestOf(text, internal), test::codeOf({1, 2, 3})};
    StoredChoice choice{.problem = Problem::make(internal, {2, 64, 32, 32}).key(),
                        .device = device,
                        .content = kernel.content,
                        .tuned = tuned,
                        .provenance = "",
                        .evidence = {}};
    Status status = (*to)->put(kernel, &choice);
    ASSERT_TRUE(status.isOk()) << status.toString();
  }

  nsa_plan *plan() {
    nsa_plan *made = nullptr;
    EXPECT_EQ(nsa_plan_create_with(engine, &spec, &maxima, nullptr, nullptr, &made, &error), NSA_OK) << error.message;
    return made;
  }
  nsa_status run(const nsa_plan *of) { return nsa_run(of, bindings, 4, nullptr, 0, nullptr, &error); }

  test::Scratch folder;
  std::string cache = folder.file("kernels.db");
  nsa_spec spec = NSA_INIT(nsa_spec);
  nsa_maxima maxima = NSA_INIT(nsa_maxima);
  nsa_tensor tensors[4];
  nsa_binding bindings[4];
  nsa_engine *engine = nullptr;
  nsa_error error;
};

TEST_F(CudaLaunch, ARunIsOneLaunchAndNothingElse) {
  nsa_plan *own = plan();
  const long launches = fake_gpu_launches(), calls = fake_gpu_calls();
  const size_t allocationsBefore = allocations, locksBefore = locks;
  const nsa_status status = run(own);
  const size_t allocated = allocations - allocationsBefore, locked = locks - locksBefore;
  EXPECT_EQ(status, NSA_OK) << error.message;
  EXPECT_EQ(fake_gpu_launches() - launches, 1);
  // The host had no context current: asked, pushed, popped, and the launch.
  EXPECT_EQ(fake_gpu_calls() - calls, 4);
  EXPECT_EQ(allocated, 0u);
  EXPECT_EQ(locked, 0u);
  const unsigned *grid = fake_gpu_last_grid();
  EXPECT_EQ(grid[0], 4u); // ceildiv(32 * 2, 16)
  EXPECT_EQ(grid[1], 2u);
  EXPECT_EQ(grid[2], 2u);
  nsa_plan_destroy(own);
}

// What the copy engine of Hopper addresses memory by: made when tensors are new, copied when they come again.
TEST_F(CudaLaunch, TensorMapsAreMadeOfTheCallsTensors) {
  constexpr int kMap = ManifestParam::kMapSlots;
  store(NSA_FAKE_GPU_KEY,
        {.params = "param map q_map q bf16 8 2 32\nparam map k_map k bf16 8 1 16\nparam view status int32 1\n"
                   "param i32 kv_heads\nparam i32 batch\n",
         .grid = "min(multiprocessors, 3 * batch) ; 1 ; 1",
         .target = "sm_90a"},
        true);
  nsa_engine_destroy(engine);
  const nsa_engine_options options = test::storedKernelOptions("cuda:0", cache);
  ASSERT_EQ(nsa_engine_create(&options, &engine, &error), NSA_OK) << error.message;
  nsa_plan *own = plan();
  fake_gpu_keep_slots(2 * kMap + 5);
  long maps = fake_gpu_maps();
  ASSERT_EQ(run(own), NSA_OK) << error.message;
  EXPECT_EQ(fake_gpu_maps() - maps, 2);
  EXPECT_EQ(fake_gpu_last_grid()[0], 6u);
  const unsigned long *slots = fake_gpu_last_slots();
  EXPECT_EQ(slots[0], reinterpret_cast<uintptr_t>(tensors[0].data));
  EXPECT_EQ(slots[kMap], reinterpret_cast<uintptr_t>(tensors[1].data));
  EXPECT_EQ(static_cast<int32_t>(slots[2 * kMap + 3]), 2) << "kv_heads, after the view's three slots";
  EXPECT_EQ(static_cast<int32_t>(slots[2 * kMap + 4]), 2) << "batch";
  const fake_gpu_map keys = *fake_gpu_last_map();
  EXPECT_EQ(keys.type, 9) << "bf16";
  EXPECT_EQ(keys.swizzle, 3) << "128 bytes";
  const unsigned long sizes[] = {8, 2, 32, 2}, strides[] = {16, 32, 32 * 32};
  const unsigned box[] = {64, 1, 16, 1};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(keys.sizes[i], sizes[i]) << i;
    EXPECT_EQ(keys.box[i], box[i]) << i;
    if (i < 3)
      EXPECT_EQ(keys.strides[i], strides[i]) << i;
  }

  maps = fake_gpu_maps();
  const size_t allocationsBefore = allocations, locksBefore = locks;
  ASSERT_EQ(run(own), NSA_OK) << error.message;
  EXPECT_EQ(allocations, allocationsBefore);
  EXPECT_EQ(locks, locksBefore);
  EXPECT_EQ(fake_gpu_maps(), maps) << "the same tensors, the same maps";
  EXPECT_EQ(slots[0], reinterpret_cast<uintptr_t>(tensors[0].data));

  // Two calls in turns, wherever their maps are kept.
  void *const first = tensors[1].data;
  for (int turn = 0; turn < 40; ++turn) {
    tensors[1].data = static_cast<char *>(first) + (turn % 2) * 8192;
    ASSERT_EQ(run(own), NSA_OK) << error.message;
  }
  EXPECT_EQ(fake_gpu_maps() - maps, 1);
  tensors[1].data = first;

  maps = fake_gpu_maps();
  tensors[1].data = static_cast<char *>(tensors[1].data) + 4096;
  ASSERT_EQ(run(own), NSA_OK) << error.message;
  EXPECT_EQ(fake_gpu_maps() - maps, 1);
  EXPECT_EQ(slots[kMap], reinterpret_cast<uintptr_t>(tensors[1].data));

  // Rows that the copy engine cannot address: the kernel is told by a map of zeros.
  maps = fake_gpu_maps();
  tensors[1].data = static_cast<char *>(tensors[1].data) + 8;
  ASSERT_EQ(run(own), NSA_OK) << error.message;
  EXPECT_EQ(fake_gpu_maps(), maps);
  for (int i = 0; i < kMap; ++i)
    EXPECT_EQ(slots[kMap + i], 0u) << i;
  EXPECT_EQ(slots[0], reinterpret_cast<uintptr_t>(tensors[0].data)) << "the queries have theirs";

  // One entry for all sequences: the kernel asks for each sequence's own.
  tensors[1].data = static_cast<char *>(tensors[1].data) - 8;
  const int64_t stride = std::exchange(tensors[1].strides[0], 0);
  ASSERT_EQ(run(own), NSA_OK) << error.message;
  EXPECT_EQ(slots[kMap], 0u);
  tensors[1].strides[0] = stride;

  // What the driver does not take.
  tensors[1].data = static_cast<char *>(tensors[1].data) + 65536;
  fake_gpu_refuse_maps(1);
  ASSERT_EQ(run(own), NSA_OK) << error.message;
  fake_gpu_refuse_maps(0);
  for (int i = 0; i < kMap; ++i)
    EXPECT_EQ(slots[kMap + i], 0u) << i;
  nsa_plan_destroy(own);
  fake_gpu_keep_slots(0);
}

// Clusters that not every GPU has are allowed when the kernel is loaded, and none of them may be what a launch finds.
TEST_F(CudaLaunch, LargeClustersAreAllowedWhereTheDeviceCanRunOne) {
  const auto makePlan = [&](const char *config) {
    store(NSA_FAKE_GPU_KEY,
          {.params = "param view status int32 1\nparam view out bf16 3\n", .target = "sm_90a", .config = config}, true);
    nsa_engine_destroy(engine);
    const nsa_engine_options options = test::storedKernelOptions("cuda:0", cache);
    EXPECT_EQ(nsa_engine_create(&options, &engine, &error), NSA_OK) << error.message;
    nsa_plan *made = nullptr;
    const nsa_status status = nsa_plan_create_with(engine, &spec, &maxima, nullptr, nullptr, &made, &error);
    nsa_plan_destroy(made);
    return status;
  };
  fake_gpu_run_clusters(0);
  ASSERT_EQ(makePlan("cluster=8"), NSA_OK) << error.message << ": every GPU with clusters has these";
  EXPECT_EQ(fake_gpu_allows_large_clusters(), 0);
  EXPECT_NE(makePlan("cluster=16"), NSA_OK);
  EXPECT_NE(std::string(error.message)
                .find("cluster = 16: must be a size of clusters of this kernel that Fake GPU can "
                      "run"),
            std::string::npos)
      << error.message;
  fake_gpu_run_clusters(1);
  EXPECT_EQ(makePlan("cluster=16"), NSA_OK) << error.message;
  EXPECT_EQ(fake_gpu_allows_large_clusters(), 1);
}

TEST_F(CudaLaunch, APlanFromMemoryAsksTheDriverNothing) {
  nsa_plan_destroy(plan());
  const long calls = fake_gpu_calls();
  const size_t before = allocations;
  for (int i = 0; i < 10000; ++i) // more than a slab has status words
    nsa_plan_destroy(plan());
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(fake_gpu_calls(), calls);
}

TEST_F(CudaLaunch, AReportIsReadOnceAndLeavesNothingToTheNextPlan) {
  nsa_plan *own = plan();
  fake_gpu_report(3, 7);
  ASSERT_EQ(run(own), NSA_OK);
  EXPECT_EQ(nsa_plan_status(own, nullptr, &error), NSA_DEVICE_ERROR);
  EXPECT_NE(std::string(error.message).find("sequence 7"), std::string::npos) << error.message;
  EXPECT_EQ(nsa_plan_status(own, nullptr, &error), NSA_OK) << "it was cleared";
  fake_gpu_report(3, 8);
  ASSERT_EQ(run(own), NSA_OK);
  nsa_plan_destroy(own); // unread
  nsa_plan *next = plan();
  EXPECT_EQ(next, own) << "the same memory serves again";
  EXPECT_EQ(nsa_plan_status(next, nullptr, &error), NSA_OK) << error.message;
  nsa_plan_destroy(next);
}

TEST_F(CudaLaunch, PlansHaveStatusWordsOfTheirOwn) {
  nsa_plan *first = plan(), *second = plan();
  fake_gpu_report(1, 0);
  ASSERT_EQ(run(first), NSA_OK);
  EXPECT_EQ(nsa_plan_status(second, nullptr, &error), NSA_OK) << error.message;
  EXPECT_EQ(nsa_plan_status(first, nullptr, &error), NSA_DEVICE_ERROR);
  nsa_plan_destroy(first);
  nsa_plan_destroy(second);
}

TEST_F(CudaLaunch, OneOfTheThreadsThatAskIsToldAReport) {
  nsa_plan *own = plan();
  for (int round = 0; round < 100; ++round) {
    fake_gpu_report(3, round);
    ASSERT_EQ(run(own), NSA_OK);
    std::atomic<int> told = 0;
    {
      std::vector<std::jthread> threads;
      for (int thread = 0; thread < 3; ++thread)
        threads.emplace_back([&] {
          nsa_error text;
          if (nsa_plan_status(own, nullptr, &text) != NSA_DEVICE_ERROR)
            return;
          ++told;
          EXPECT_TRUE(strstr(text.message, ("sequence " + std::to_string(round)).c_str())) << text.message;
        });
    }
    ASSERT_EQ(told, 1);
  }
  nsa_plan_destroy(own);
}

// More plans are held than the first slab has status words, and no second one can be had.
TEST_F(CudaLaunch, APlanWithoutAStatusWordIsAnErrorAndCountsAsOne) {
  constexpr size_t kWords = 4096;
  // The first slab of words comes with the context, which may be made while the first plan is.
  std::vector<nsa_plan *> held = {plan()};
  fake_gpu_refuse_host_memory(1);
  while (held.size() < kWords)
    held.push_back(plan());
  nsa_plan *refused = nullptr;
  EXPECT_EQ(nsa_plan_create_with(engine, &spec, &maxima, nullptr, nullptr, &refused, &error), NSA_OUT_OF_MEMORY)
      << error.message;
  EXPECT_EQ(refused, nullptr);
  nsa_stats stats = NSA_INIT(nsa_stats);
  ASSERT_EQ(nsa_engine_get_stats(engine, &stats, nullptr), NSA_OK);
  EXPECT_EQ(stats.plans_failed, 1u);
  EXPECT_EQ(stats.plans_from_database + stats.plans_from_memory, kWords);
  nsa_plan_destroy(held.back());
  held.back() = plan(); // one that was given back has its word
  fake_gpu_refuse_host_memory(0);
  held.push_back(plan());
  for (nsa_plan *one : held)
    nsa_plan_destroy(one);
}

TEST_F(CudaLaunch, WhileAStreamCapturesMemoryServes) {
  nsa_plan *own = plan();
  fake_gpu_capture(1);
  nsa_plan *captured = plan();
  EXPECT_EQ(run(captured), NSA_OK) << error.message;
  EXPECT_EQ(nsa_plan_status(captured, nullptr, &error), NSA_CAPTURING);
  nsa_plan *unknown = nullptr;
  nsa_plan_options compares = NSA_INIT(nsa_plan_options);
  compares.compare = 1;
  EXPECT_EQ(nsa_plan_create_with(engine, &spec, &maxima, &compares, nullptr, &unknown, &error), NSA_CAPTURING);
  EXPECT_NE(std::string(error.rule).find("compares"), std::string::npos) << error.rule;
  EXPECT_STRNE(error.hint, "");
  maxima.max_batch = 100;
  EXPECT_EQ(nsa_plan_create_with(engine, &spec, &maxima, nullptr, nullptr, &unknown, &error), NSA_CAPTURING);
  EXPECT_NE(std::string(error.message).find("batch=128"), std::string::npos) << error.message;
  fake_gpu_capture(0);
  nsa_plan_destroy(captured);
  nsa_plan_destroy(own);
}

// Of the steps of the ladder each serves only where those in front of it cannot, and no model's winner is one here.
TEST_F(CudaLaunch, KernelsOfOtherModelsAndOlderCodeServeUntuned) {
  const struct {
    const char *device, *target, *step; // "": does not serve
    bool tuned;
  } rows[] = {{"NVIDIA B200", "sm_100a", "", true},      {"NVIDIA A100", "sm_80", "", true},
              {"sm_90", "sm_90", "architecture", false}, {"sm_90a", "sm_90a", "model", false},
              {"NVIDIA H100", "sm_90a", "model", true},  {NSA_FAKE_GPU_KEY, "sm_90a", "exact", true}};
  cache = folder.file("others.db");
  for (const auto &row : rows) {
    SCOPED_TRACE(row.device);
    storeAs(row.device, row.target, row.tuned);
    const nsa_engine_options options = test::storedKernelOptions("cuda:0", cache);
    nsa_engine *other = nullptr;
    ASSERT_EQ(nsa_engine_create(&options, &other, &error), NSA_OK) << error.message;
    nsa_plan *made = nullptr;
    const nsa_status status = nsa_plan_create_with(other, &spec, &maxima, nullptr, nullptr, &made, &error);
    EXPECT_EQ(status, *row.step ? NSA_OK : NSA_CACHE_MISS) << error.message;
    if (made) {
      const std::string text = nsa_plan_describe(made);
      EXPECT_NE(text.find("\"step\": \"" + std::string(row.step) + "\""), std::string::npos) << text;
      EXPECT_NE(text.find("\"content\": \"content of " + std::string(row.device) + "\""), std::string::npos) << text;
      EXPECT_NE(text.find(row.device == std::string(NSA_FAKE_GPU_KEY) ? "\"tuned\": true" : "\"tuned\": false"),
                std::string::npos)
          << text;
      EXPECT_EQ(run(made), NSA_OK) << error.message;
    }
    nsa_plan_destroy(made);
    nsa_engine_destroy(other);
  }
}

TEST_F(CudaLaunch, AChildIsToldWhatToDoInsteadOfUsingCuda) {
  nsa_plan *own = plan();
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(30);
    const long calls = fake_gpu_calls();
    auto told = [&](nsa_status status) {
      return status == NSA_UNAVAILABLE && strstr(error.message, "fork") && strstr(error.hint, "spawn");
    };
    nsa_plan *made = nullptr;
    nsa_stats stats = NSA_INIT(nsa_stats);
    if (!told(nsa_plan_create_with(engine, &spec, &maxima, nullptr, nullptr, &made, &error)) || made)
      _exit(1);
    if (!told(run(own)))
      _exit(2);
    if (!told(nsa_plan_status(own, nullptr, &error)))
      _exit(3);
    if (!told(nsa_engine_get_stats(engine, &stats, &error)))
      _exit(4);
    nsa_plan_destroy(own);
    nsa_engine_destroy(engine);
    _exit(fake_gpu_calls() == calls ? 0 : 5);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(run(own), NSA_OK) << error.message;
  nsa_plan_destroy(own);
}

} // namespace
