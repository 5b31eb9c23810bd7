#include "tests/cache/store_fixture.h"

#include <cmath>
#include <csignal>
#include <filesystem>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>

namespace nsa {
namespace {

TEST_F(StoreTest, RoundTripThroughAnotherStore) {
  StoredKernel kernel = makeKernel(1);
  StoredChoice choice = makeChoice(1, true);
  ASSERT_TRUE(openStore()->put(kernel, &choice).isOk());

  std::unique_ptr<KernelStore> store = openStore();
  EXPECT_FALSE(store->isReadOnly());
  expectKernel(*store, 1);
  auto found = store->findChoice(choice.problem, choice.device);
  ASSERT_TRUE(found && found->has_value());
  const StoredChoice &stored = **found;
  EXPECT_EQ(stored.problem, choice.problem);
  EXPECT_EQ(stored.device, choice.device);
  EXPECT_EQ(stored.content, kernel.content);
  EXPECT_TRUE(stored.tuned);
  EXPECT_EQ(stored.provenance, choice.provenance);
  ASSERT_EQ(stored.evidence.size(), 2u);
  EXPECT_EQ(stored.evidence[0].outcome, "winner");
  EXPECT_EQ(stored.evidence[0].milliseconds, 0.5);
  EXPECT_EQ(stored.evidence[0].ratioToIncumbent, 0.9);
  EXPECT_EQ(stored.evidence[1].detail, "largest difference 0.5");

  StoreCounters counters = store->counters();
  EXPECT_EQ(counters.hits, 2u);
  EXPECT_EQ(counters.misses, 0u);
}

// A host may have limited the size of its files, and expects no signal.
TEST_F(StoreTest, ALimitOfFileSizesIsAnError) {
  const pid_t child = startProcess([&] {
    const rlimit limit{200'000, 200'000};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    {
      std::unique_ptr<KernelStore> store = openStore();
      EXPECT_TRUE(store->put(makeKernel(1), nullptr).isOk());
      for (int number = 2; number < 20; ++number)
        if (const Status status = store->put(makeKernel(number, 100'000), nullptr); !status.isOk())
          break;
        else
          EXPECT_LT(number, 19) << "two megabytes do not fit";
    }
    sigset_t pending;
    sigpending(&pending);
    EXPECT_EQ(sigismember(&pending, SIGXFSZ), 0);
    expectKernel(*openStore(), 1);
  });
  expectGoodEnd(child);
}

TEST_F(StoreTest, WhatIsNotThereIsAMiss) {
  std::unique_ptr<KernelStore> store = openStore();
  EXPECT_FALSE(holdsKernel(*store, 1));
  auto choice = store->findChoice("p", "d");
  ASSERT_TRUE(choice);
  EXPECT_FALSE(choice->has_value());
  EXPECT_EQ(store->counters().misses, 2u);
  EXPECT_EQ(store->counters().damagedRows, 0u);
}

TEST_F(StoreTest, ChoicesAreKeptPerProblemAndDevice) {
  std::unique_ptr<KernelStore> store = openStore();
  StoredChoice h100 = makeChoice(1, true), h200 = makeChoice(2, true);
  h100.problem = h200.problem;
  h100.device = "H100";
  h200.device = "H200";
  ASSERT_TRUE(store->put(makeKernel(1), &h100).isOk());
  ASSERT_TRUE(store->put(makeKernel(2), &h200).isOk());
  EXPECT_EQ((**store->findChoice(h100.problem, "H100")).content, makeKernel(1).content);
  EXPECT_EQ((**store->findChoice(h100.problem, "H200")).content, makeKernel(2).content);
  EXPECT_EQ((*store->listChoices()).size(), 2u);
}

TEST_F(StoreTest, TunedChoiceIsReplacedByTunedOnly) {
  std::unique_ptr<KernelStore> store = openStore();
  StoredChoice choice = makeChoice(1, false);
  ASSERT_TRUE(store->put(makeKernel(1), &choice).isOk());
  auto current = [&] { return **store->findChoice(choice.problem, choice.device); };

  StoredChoice better = choice;
  better.content = makeKernel(2).content;
  better.tuned = true;
  better.evidence.resize(1);
  ASSERT_TRUE(store->put(makeKernel(2), &better).isOk());
  EXPECT_EQ(current().content, makeKernel(2).content);
  EXPECT_EQ(current().evidence.size(), 1u) << "evidence of the older choice is gone";

  ASSERT_TRUE(store->put(makeKernel(1), &choice).isOk());
  EXPECT_EQ(current().content, makeKernel(2).content) << "a default does not replace a measurement";
  EXPECT_TRUE(current().tuned);
  EXPECT_EQ(current().evidence.size(), 1u);

  better.content = makeKernel(3).content;
  ASSERT_TRUE(store->put(makeKernel(3), &better).isOk());
  EXPECT_EQ(current().content, makeKernel(3).content);
}

TEST_F(StoreTest, TunedChoiceOfADamagedKernelMakesRoom) {
  std::unique_ptr<KernelStore> store = openStore();
  StoredChoice tuned = makeChoice(1, true);
  ASSERT_TRUE(store->put(makeKernel(1), &tuned).isOk());
  sql("UPDATE kernels SET digest = zeroblob(32)");
  StoredChoice fallback = tuned;
  fallback.content = makeKernel(2).content;
  fallback.tuned = false;
  ASSERT_TRUE(store->put(makeKernel(2), &fallback).isOk());
  EXPECT_EQ((**store->findChoice(tuned.problem, tuned.device)).content, makeKernel(2).content);
}

TEST_F(StoreTest, PutRejectsWhatCouldNotBeLoaded) {
  std::unique_ptr<KernelStore> store = openStore();
  StoredKernel kernel = makeKernel(1);
  kernel.manifest = "manifest 99\n";
  EXPECT_EQ(store->put(kernel, nullptr).error().field, "manifest");
  kernel = makeKernel(1);
  kernel.content.clear();
  EXPECT_EQ(store->put(kernel, nullptr).error().field, "content");
  StoredChoice other = makeChoice(2, true);
  EXPECT_EQ(store->put(makeKernel(1), &other).error().field, "choice.content");
  EXPECT_EQ(store->counters().failedWrites, 3u);
  EXPECT_TRUE(store->listKernels()->empty()) << "nothing half-written";
}

TEST_F(StoreTest, OddValuesSurvive) {
  std::unique_ptr<KernelStore> store = openStore();
  StoredChoice choice = makeChoice(1, true);
  choice.provenance.clear();
  choice.device = "it's \"quoted\"; DROP TABLE kernels";
  choice.evidence = {{"", "", "measured", NAN, INFINITY, "many\nlines \xc3\xa9"}};
  ASSERT_TRUE(store->put(makeKernel(1, 0), &choice).isOk());
  expectKernel(*store, 1, 0);
  StoredChoice found = **store->findChoice(choice.problem, choice.device);
  EXPECT_EQ(found.device, choice.device);
  EXPECT_EQ(found.evidence.at(0).milliseconds, 0) << "neither NaN nor infinity is a time";
  EXPECT_EQ(found.evidence.at(0).ratioToIncumbent, 0);
  EXPECT_EQ(found.evidence.at(0).detail, "many\nlines \xc3\xa9");
}

TEST_F(StoreTest, ListsWithSizes) {
  std::unique_ptr<KernelStore> store = openStore();
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(store->put(makeKernel(i), nullptr).isOk());
  auto kernels = store->listKernels();
  ASSERT_TRUE(kernels);
  ASSERT_EQ(kernels->size(), 3u);
  for (const KernelSummary &kernel : *kernels) {
    EXPECT_EQ(kernel.templateName, "attention");
    EXPECT_EQ(kernel.op, "window");
    EXPECT_EQ(kernel.target, "sm_90a");
    EXPECT_EQ(kernel.config.find("key_tile="), 0u);
    EXPECT_EQ(kernel.binaryBytes, 20000);
    EXPECT_GT(kernel.compressedBytes, 10000);
    EXPECT_LT(kernel.compressedBytes, 11000);
  }
}

TEST_F(StoreTest, MakesMissingDirectoriesPrivate) {
  std::string warning;
  path = directory + "/a/b/kernels.db";
  std::unique_ptr<KernelStore> store = openStore(path, warning);
  EXPECT_EQ(warning, "");
  ASSERT_TRUE(store->put(makeKernel(1), nullptr).isOk());
  for (const char *made : {"/a", "/a/b"}) {
    struct stat status;
    ASSERT_EQ(stat((directory + made).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u) << made;
  }
}

TEST_F(StoreTest, MemoryKeepsNothingOnDisk) {
  std::string warning;
  std::unique_ptr<KernelStore> store = openStore(":memory:", warning);
  EXPECT_EQ(warning, "");
  StoredChoice choice = makeChoice(1, false);
  ASSERT_TRUE(store->put(makeKernel(1), &choice).isOk());
  expectKernel(*store, 1);
  EXPECT_EQ(store->path(), ":memory:");
  EXPECT_TRUE(std::filesystem::is_empty(directory));
}

TEST_F(StoreTest, EmptyPathIsAnError) {
  std::string warning;
  auto store = KernelStore::open({"", false}, warning);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.status().error().field, "cache_path");
}

TEST_F(StoreTest, TwoStoresOnOneFileSeeEachOther) {
  std::unique_ptr<KernelStore> first = openStore(), second = openStore();
  for (int i = 0; i < 20; ++i) {
    StoredChoice choice = makeChoice(i, true);
    ASSERT_TRUE((i % 2 ? first : second)->put(makeKernel(i), &choice).isOk());
    expectKernel(i % 2 ? *second : *first, i);
  }
}

TEST_F(StoreTest, ManyThreadsOnOneStore) {
  std::unique_ptr<KernelStore> store = openStore();
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 10; ++i) {
          StoredChoice choice = makeChoice(t * 10 + i, i % 2);
          EXPECT_TRUE(store->put(makeKernel(t * 10 + i, 2000), &choice).isOk());
          expectKernel(*store, t * 10 + i / 2, 2000);
        }
      });
  }
  EXPECT_EQ(store->listChoices()->size(), 80u);
  EXPECT_EQ(store->counters().hits, 80u);
}

} // namespace
} // namespace nsa
