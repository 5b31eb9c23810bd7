// The packs that come with the project: each of their rows is whole and of this tree's compiler and templates, so that
// it serves. After a change to either, tune anew (docs/shipping_a_cache.md) or remove the pack: nobody else would
// notice that it serves nobody.
#include "cache/cache_file.h"
#include "cache/kernel_rows.h"
#include "runtime/base/compiler_revision.h"
#include "runtime/base/manifest.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <set>

namespace nsa {
namespace {

constexpr uintmax_t kMostBytes = 8 << 20; // of one that is committed

TEST(ShippedPack, HasWholeRowsOfThisTree) {
  int packs = 0;
  for (const auto &entry : std::filesystem::directory_iterator(NSA_SHIPPED_PACKS)) {
    if (entry.path().extension() != ".nsapack")
      continue;
    ++packs;
    SCOPED_TRACE(entry.path().filename().string());
    EXPECT_LE(entry.file_size(), kMostBytes);
    EXPECT_TRUE(std::filesystem::exists(std::filesystem::path(entry.path()).replace_extension(".json")))
        << "its evidence, to be read";
    Result<CacheFile> pack = CacheFile::open(entry.path().string());
    ASSERT_TRUE(pack) << pack.status().toString();
    const Result<std::vector<StoredChoice>> choices = pack->choices();
    ASSERT_TRUE(choices) << choices.status().toString();
    EXPECT_GT(choices->size(), 0u);
    std::set<std::string> seen;
    for (const StoredChoice &choice : *choices) {
      if (!seen.insert(choice.content).second)
        continue;
      StoredKernel kernel;
      RowState state{};
      ASSERT_EQ(readKernel(pack->connection(), choice.content, kernel, state), SQLITE_OK);
      ASSERT_EQ(state, RowState::kIntact) << choice.problem;
      const Result<Manifest> manifest = Manifest::parse(kernel.manifest);
      ASSERT_TRUE(manifest) << manifest.status().toString();
      ASSERT_EQ(manifest->evidence.at("compiler"), compilerRevision())
          << choice.problem << "\nthe compiler or a template has changed since the pack was made";
    }
  }
  EXPECT_GT(packs, 0);
}

} // namespace
} // namespace nsa
