// Files cut short or with bits turned over, a thousand of them: whatever comes out is right or is nothing.
#include "runtime/engine/choices/kernel_match.h"
#include "tests/cache/pack_fixture.h"

#include <filesystem>
#include <random>

namespace nsa {
namespace {

constexpr int kKernels = 5;
constexpr size_t kBytes = 4000; // of a kernel: most of the file is rows and pages, not noise
constexpr int kFlips = 1000;
constexpr int kLengths = 60;

// Of each number another value is compiled in.
Problem problemOf(int number) {
  Problem problem(Operator::kWindow);
  problem.set(ProblemField::kDType, static_cast<int64_t>(DType::kBf16));
  problem.set(ProblemField::kGroup, number + 1);
  problem.set(ProblemField::kSeqlenK, 10);
  return problem;
}

StoredKernel kernelOf(int number) {
  StoredKernel kernel = makeKernel(number, kBytes);
  kernel.manifest += "fixed " + formatValues(problemOf(number).fixed()) + "\n";
  return kernel;
}

StoredChoice choiceOf(int number) {
  StoredChoice choice = makeChoice(number, true);
  choice.problem = problemOf(number).key();
  return choice;
}

class FlipTest : public PackTest {
protected:
  void SetUp() override {
    {
      std::unique_ptr<KernelStore> store = openStore();
      for (int i = 0; i < kKernels; ++i) {
        kernels.push_back(kernelOf(i));
        choices.push_back(choiceOf(i));
        ASSERT_TRUE(store->put(kernels[i], &choices[i]).isOk());
        ASSERT_TRUE(store->putRoute(makeRoute(i)).isOk());
      }
    }
    ASSERT_TRUE(exportFrom(path, packPath));
    database = readFile(path);
    pack = readFile(packPath);
  }

  void expectRightOrNothingOfDatabase(const std::string &bytes) {
    for (const auto &entry : std::filesystem::directory_iterator(directory))
      std::filesystem::remove(entry.path());
    writeFile(path, bytes);
    std::string warning;
    std::unique_ptr<KernelStore> store = openStore(path, warning);
    for (int i = 0; i < kKernels; ++i) {
      const auto find = [&](const std::string &content) {
        Result<std::optional<StoredKernel>> found = store->findKernel(content);
        EXPECT_TRUE(found) << "a lookup never fails: " << found.status().toString();
        return found ? std::move(*found) : std::nullopt;
      };
      expectRightOrNothing(find(kernels[i].content), i);
      const Result<std::optional<StoredChoice>> choice = store->findChoice(choices[i].problem, choices[i].device);
      ASSERT_TRUE(choice) << choice.status().toString();
      if (*choice)
        expectServesOrNothing(find((*choice)->content), i);
      // Nothing guards a threshold, or whether a choice was measured: they decide what is fast.
      ASSERT_TRUE(store->findRoute(makeRoute(i).family, choices[i].device, makeRoute(i).name));
    }
  }

  void expectRightOrNothing(const std::optional<StoredKernel> &found, int number) {
    if (!found)
      return;
    EXPECT_EQ(found->content, kernels[number].content);
    EXPECT_EQ(found->manifest, kernels[number].manifest);
    EXPECT_EQ(found->binary, kernels[number].binary);
  }

  // What an engine would run for the problem: a kernel that its choice names and whose manifest is of it. A row of a
  // database may name another one, as nothing guards it.
  void expectServesOrNothing(const std::optional<StoredKernel> &named, int number) {
    if (!named)
      return;
    const Result<Manifest> manifest = Manifest::parse(named->manifest);
    ASSERT_TRUE(manifest) << manifest.status().toString();
    if (!checkServes(*manifest, ProblemKey::of(problemOf(number)), "sm_90a").isOk())
      return;
    ++served;
    expectRightOrNothing(named, number);
  }

  // What opens has the choices and routes that were exported; a kernel may be lost.
  void expectRightOrNothingOfPack(const std::string &bytes) {
    writeFile(packPath, bytes);
    const Result<std::unique_ptr<Pack>> opened = Pack::open(packPath, {});
    if (!opened) {
      ++refused;
      EXPECT_NE(opened.status().toString().find(packPath), std::string::npos);
      return;
    }
    for (int i = 0; i < kKernels; ++i) {
      const std::optional<StoredKernel> found = (*opened)->findKernel(kernels[i].content);
      lost += !found;
      expectRightOrNothing(found, i);
      const StoredChoice &choice = choices[i];
      const std::optional<StoredChoice> answer = (*opened)->findChoice(choice.problem, choice.device);
      if (answer) {
        ASSERT_EQ(answer->content, choice.content);
        ASSERT_TRUE(answer->tuned);
      }
      const std::optional<StoredRoute> route =
          (*opened)->findRoute(makeRoute(i).family, choice.device, makeRoute(i).name);
      if (route)
        ASSERT_EQ(route->threshold, makeRoute(i).threshold);
    }
  }

  std::vector<StoredKernel> kernels;
  std::vector<StoredChoice> choices;
  std::string database, pack;
  int refused = 0, lost = 0, served = 0;
};

TEST_F(FlipTest, OneBitOfADatabase) {
  std::mt19937 random(1); // NOLINT(bugprone-random-generator-seed): the same bits in every run
  for (int flip = 0; flip < kFlips && !HasFailure(); ++flip) {
    std::string bytes = database;
    const size_t at = random() % bytes.size();
    bytes[at] ^= static_cast<char>(1 << random() % 8);
    SCOPED_TRACE("flip " + std::to_string(flip) + " at byte " + std::to_string(at));
    expectRightOrNothingOfDatabase(bytes);
  }
  EXPECT_GT(served, kFlips * kKernels / 2) << "a bit is seldom more than one kernel's";
}

TEST_F(FlipTest, OneBitOfAPack) {
  std::mt19937 random(2); // NOLINT(bugprone-random-generator-seed): the same bits in every run
  for (int flip = 0; flip < kFlips && !HasFailure(); ++flip) {
    std::string bytes = pack;
    const size_t at = random() % bytes.size();
    bytes[at] ^= static_cast<char>(1 << random() % 8);
    SCOPED_TRACE("flip " + std::to_string(flip) + " at byte " + std::to_string(at));
    expectRightOrNothingOfPack(bytes);
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(lost, 0);
}

TEST_F(FlipTest, ADatabaseCutShort) {
  for (int i = 0; i < kLengths && !HasFailure(); ++i) {
    const size_t length = database.size() * static_cast<size_t>(i) / kLengths + static_cast<size_t>(i % 3);
    SCOPED_TRACE(std::to_string(length) + " of " + std::to_string(database.size()) + " bytes");
    expectRightOrNothingOfDatabase(database.substr(0, length));
  }
}

TEST_F(FlipTest, APackCutShort) {
  for (int i = 0; i < kLengths && !HasFailure(); ++i) {
    const size_t length = pack.size() * static_cast<size_t>(i) / kLengths + static_cast<size_t>(i % 3);
    SCOPED_TRACE(std::to_string(length) + " of " + std::to_string(pack.size()) + " bytes");
    expectRightOrNothingOfPack(pack.substr(0, length));
  }
  EXPECT_GT(refused, kLengths / 2);
}

} // namespace
} // namespace nsa
