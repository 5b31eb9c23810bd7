// Files cut short or with bits turned over, a thousand of them: whatever comes out is right or is nothing.
#include "tests/cache/pack_fixture.h"

#include <filesystem>
#include <random>

namespace nsa {
namespace {

constexpr int kKernels = 5;
constexpr size_t kBytes = 4000; // of a kernel: most of the file is rows and pages, not noise
constexpr int kFlips = 1000;
constexpr int kLengths = 60;

class FlipTest : public PackTest {
protected:
  void SetUp() override {
    {
      std::unique_ptr<KernelStore> store = openStore();
      for (int i = 0; i < kKernels; ++i) {
        const StoredChoice choice = makeChoice(i, true);
        ASSERT_TRUE(store->put(makeKernel(i, kBytes), &choice).isOk());
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
      if (holdsKernel(*store, i))
        expectKernel(*store, i, kBytes);
      const StoredChoice choice = makeChoice(i, true);
      ASSERT_TRUE(store->findChoice(choice.problem, choice.device));
      ASSERT_TRUE(store->findRoute(makeRoute(i).family, choice.device, makeRoute(i).name));
    }
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
      const StoredKernel kernel = makeKernel(i, kBytes);
      const std::optional<StoredKernel> found = (*opened)->findKernel(kernel.content);
      lost += !found;
      if (found) {
        ASSERT_EQ(found->manifest, kernel.manifest);
        ASSERT_EQ(found->binary, kernel.binary);
      }
      const StoredChoice choice = makeChoice(i, true);
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

  std::string database, pack;
  int refused = 0, lost = 0;
};

TEST_F(FlipTest, OneBitOfADatabase) {
  std::mt19937 random(1);
  for (int flip = 0; flip < kFlips && !HasFailure(); ++flip) {
    std::string bytes = database;
    const size_t at = random() % bytes.size();
    bytes[at] ^= static_cast<char>(1 << random() % 8);
    SCOPED_TRACE("flip " + std::to_string(flip) + " at byte " + std::to_string(at));
    expectRightOrNothingOfDatabase(bytes);
  }
}

TEST_F(FlipTest, OneBitOfAPack) {
  std::mt19937 random(2);
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
