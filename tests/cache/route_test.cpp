// Measured thresholds, and files of older schemas that have none.
#include "cache/database/tables.h"
#include "tests/cache/pack_fixture.h"

#include <filesystem>
#include <limits>

namespace nsa {
namespace {

class RouteTest : public StoreTest {};

TEST_F(RouteTest, RoundTripThroughAnotherStore) {
  const StoredRoute route = makeRoute(1), never = makeRoute(2, StoredRoute::kNever);
  {
    std::unique_ptr<KernelStore> store = openStore();
    ASSERT_TRUE(store->putRoute(route).isOk());
    ASSERT_TRUE(store->putRoute(never).isOk());
  }
  std::unique_ptr<KernelStore> store = openStore();
  auto found = store->findRoute(route.family, route.device, route.name);
  ASSERT_TRUE(found && found->has_value());
  EXPECT_EQ(**found, route);
  found = store->findRoute(never.family, never.device, never.name);
  ASSERT_TRUE(found && found->has_value()) << "that a switch never pays is an answer";
  EXPECT_EQ((*found)->threshold, -1);
  EXPECT_FALSE(store->findRoute("another", route.device, route.name)->has_value());
  EXPECT_EQ(store->listRoutes()->size(), 2u);
}

TEST_F(RouteTest, ARouteIsReplacedWithItsEvidence) {
  std::unique_ptr<KernelStore> store = openStore();
  StoredRoute route = makeRoute(1);
  ASSERT_TRUE(store->putRoute(route).isOk());
  route.threshold = 512;
  route.evidence.resize(1);
  route.evidence[0].milliseconds = std::numeric_limits<double>::quiet_NaN(); // no measurement
  ASSERT_TRUE(store->putRoute(route).isOk());
  auto found = store->findRoute(route.family, route.device, route.name);
  ASSERT_TRUE(found && found->has_value());
  EXPECT_EQ((*found)->threshold, 512);
  ASSERT_EQ((*found)->evidence.size(), 1u);
  EXPECT_EQ((*found)->evidence[0].milliseconds, 0);
  EXPECT_EQ(sql("SELECT count(*) FROM route_evidence"), "1");
}

TEST_F(RouteTest, ARouteThatNamesNothingIsRefused) {
  std::unique_ptr<KernelStore> store = openStore();
  const struct {
    std::string StoredRoute::*field;
    const char *name;
  } rows[] = {{&StoredRoute::family, "route.family"},
              {&StoredRoute::device, "route.device"},
              {&StoredRoute::name, "route.name"}};
  for (const auto &row : rows) {
    StoredRoute route = makeRoute(1);
    (route.*row.field).clear();
    EXPECT_EQ(store->putRoute(route).error().field, row.name);
  }
  EXPECT_EQ(store->putRoute(makeRoute(1, -2)).error().field, "route.threshold");
  EXPECT_EQ(store->counters().failedWrites, 4u);
  EXPECT_TRUE(store->listRoutes()->empty());
}

// Files as the first two versions made them: the schema of today without what came later.
class OldSchemaTest : public StoreTest {
protected:
  void makeOld(int version) {
    {
      std::unique_ptr<KernelStore> store = openStore();
      for (int i = 0; i < 3; ++i) {
        const StoredChoice choice = makeChoice(i, true);
        ASSERT_TRUE(store->put(makeKernel(i), &choice).isOk());
      }
    }
    sql("DROP TABLE route_evidence; DROP TABLE routes; DROP TABLE uses");
    if (version == 1)
      sql("DROP TABLE leases");
    sql("PRAGMA user_version = " + std::to_string(version) + "; PRAGMA wal_checkpoint(TRUNCATE)");
  }
};

TEST_F(OldSchemaTest, IsBroughtUpToDateWithAllItsRows) {
  for (const int version : {1, 2}) {
    SCOPED_TRACE(version);
    makeOld(version);
    std::unique_ptr<KernelStore> store = openStore();
    for (int i = 0; i < 3; ++i) {
      expectKernel(*store, i);
      const StoredChoice choice = makeChoice(i, true);
      auto found = store->findChoice(choice.problem, choice.device);
      ASSERT_TRUE(found && found->has_value());
      EXPECT_EQ(**found, choice);
    }
    EXPECT_TRUE(store->putRoute(makeRoute(1)).isOk());
    EXPECT_FALSE(store->findLease({"p", "d", "w"})->has_value());
    store.reset();
    EXPECT_EQ(sql("PRAGMA user_version"), std::to_string(kSchemaVersion));
    EXPECT_EQ(sql("SELECT count(*) FROM uses WHERE day BETWEEN strftime('%s', 'now') / 86400 - 1 AND "
                  "strftime('%s', 'now') / 86400"),
              "3")
        << "or the first collection would take them for never used";
    EXPECT_EQ(sql("PRAGMA integrity_check"), "ok");
    for (const char *ending : {"", "-wal", "-shm"})
      std::filesystem::remove(path + ending);
  }
}

TEST_F(OldSchemaTest, IsReadAsItIsWhereItCannotBeWritten) {
  for (const int version : {1, 2}) {
    makeOld(version);
    std::string warning;
    std::unique_ptr<KernelStore> store = openStore(path, warning, true);
    EXPECT_EQ(warning, "");
    expectKernel(*store, 1);
    auto route = store->findRoute("f", "d", "n");
    ASSERT_TRUE(route);
    EXPECT_FALSE(route->has_value());
    EXPECT_TRUE(store->listRoutes()->empty());
    EXPECT_EQ(store->summarizeChoices("window")->size(), 3u);
    EXPECT_FALSE(store->findLease({"p", "d", "tune"})) << "version 1 has none";
    EXPECT_EQ(store->counters().damagedRows, 0u);
    store.reset();
    EXPECT_EQ(sql("PRAGMA user_version"), std::to_string(version));
    for (const char *ending : {"", "-wal", "-shm"})
      std::filesystem::remove(path + ending);
  }
}

TEST_F(RouteTest, ChoicesOfOneOperatorAreListedWithoutEvidence) {
  std::unique_ptr<KernelStore> store = openStore();
  for (int i = 0; i < 3; ++i) {
    StoredChoice choice = makeChoice(i, i == 1);
    ASSERT_TRUE(store->put(makeKernel(i), &choice).isOk());
  }
  StoredChoice other = makeChoice(4, true);
  other.problem = "windows are not window | x=1"; // begins alike
  ASSERT_TRUE(store->put(makeKernel(4), &other).isOk());
  auto choices = store->summarizeChoices("window");
  ASSERT_TRUE(choices);
  ASSERT_EQ(choices->size(), 3u);
  for (int i = 0; i < 3; ++i) {
    const ChoiceSummary &choice = (*choices)[static_cast<size_t>(i)];
    EXPECT_EQ(choice.problem, makeChoice(i, true).problem);
    EXPECT_EQ(choice.device, "gpu sm_90a");
    EXPECT_EQ(choice.content, makeKernel(i).content);
    EXPECT_EQ(choice.tuned, i == 1);
    EXPECT_EQ(choice.target, "sm_90a");
    EXPECT_EQ(choice.templateName, "attention");
    EXPECT_EQ(choice.config, "key_tile=" + std::to_string(16 * (i + 1)));
    EXPECT_EQ(choice.layer, 0);
  }
}

} // namespace
} // namespace nsa
