#include "tests/cache/stored_fixture.h"

#include <filesystem>

namespace nsa {

void StoredTest::keep() {
  sql("PRAGMA wal_checkpoint(TRUNCATE)");
  kept = readFile(path);
}

void StoredTest::restore() const {
  for (const char *ending : {"-wal", "-shm", "-journal"})
    std::filesystem::remove(path + ending);
  writeFile(path, kept);
}

void StoredTest::expectNothingLost() const {
  // First, so that it sees what a death left behind.
  EXPECT_EQ(sql("PRAGMA integrity_check"), "ok");
  EXPECT_EQ(sql("PRAGMA foreign_key_check"), "");
  std::unique_ptr<KernelStore> store = openStore();
  for (int i = 0; i < kStored; ++i) {
    expectKernel(*store, i);
    const StoredChoice choice = makeChoice(i, true);
    auto found = store->findChoice(choice.problem, choice.device);
    ASSERT_TRUE(found && found->has_value());
    EXPECT_EQ(**found, choice);
  }
  EXPECT_GE(store->listRoutes()->size(), static_cast<size_t>(kStored));
  EXPECT_EQ(store->counters().damagedRows, 0u);
}

} // namespace nsa
