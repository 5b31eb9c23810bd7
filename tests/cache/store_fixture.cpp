#include "tests/cache/store_fixture.h"

#include "cache/database/schema.h"
#include "runtime/base/digest.h"

#include <cstdio>
#include <random>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

// Of the address sanitizer, and null without it.
extern "C" [[gnu::weak]] void __sanitizer_purge_allocator();

namespace nsa {

std::unique_ptr<KernelStore> StoreTest::openStore(const std::string &file, std::string &warning, bool readOnly) const {
  Result<std::unique_ptr<KernelStore>> store = KernelStore::open({file, readOnly}, warning);
  EXPECT_TRUE(store) << store.status().toString();
  return store ? std::move(*store) : nullptr;
}

std::unique_ptr<KernelStore> StoreTest::openStore() const {
  std::string warning;
  std::unique_ptr<KernelStore> store = openStore(path, warning);
  EXPECT_EQ(warning, "");
  EXPECT_EQ(store->path(), path);
  return store;
}

std::string StoreTest::sql(const std::string &statement) const { return runSql(path, statement); }

void StoreTest::asOrdinaryUser(const std::function<void()> &body) {
  if (geteuid() != 0)
    return body();
  std::fflush(nullptr);
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0)
      _exit(2);
    body();
    std::fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2)
    GTEST_SKIP() << "this root cannot become another user";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

std::string runSql(const std::string &file, const std::string &statement) {
  sqlite3 *database = nullptr;
  EXPECT_EQ(sqlite3_open(file.c_str(), &database), SQLITE_OK);
  sqlite3_busy_timeout(database, 5000);
  std::string value;
  auto keepFirst = [](void *user, int count, char **values, char **) {
    auto &text = *static_cast<std::string *>(user);
    if (count > 0 && values[0] && text.empty())
      text = values[0];
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(database, statement.c_str(), keepFirst, &value, nullptr), SQLITE_OK)
      << statement << ": " << sqlite3_errmsg(database);
  sqlite3_close(database);
  return value;
}

pid_t startProcess(const std::function<void()> &body) {
  constexpr unsigned kLongestSeconds = 120;
  std::fflush(nullptr);
  // A fork may find the lock of the sanitizer's quarantine taken by another thread, and then it stays taken in the
  // child. The child does not ask for this lock before its own part of the quarantine is full, so it starts with an
  // empty part.
  if (__sanitizer_purge_allocator)
    __sanitizer_purge_allocator();
  pid_t child = fork();
  if (child != 0)
    return child;
  alarm(kLongestSeconds);
  body();
  std::fflush(nullptr);
  _exit(testing::Test::HasFailure() ? 1 : 0);
}

void expectGoodEnd(pid_t child) {
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

std::string damagedDatabase(size_t bytes) {
  std::string text(bytes, 'x');
  text.replace(0, 16, "SQLite format 3", 16);
  text.replace(60, 4, std::string(3, '\0') + static_cast<char>(kSchemaVersion));
  text.replace(68, 4, "NSAK");
  return text;
}

StoredKernel makeKernel(int number, size_t bytes) {
  StoredKernel kernel;
  kernel.content = Digest().update("kernel " + std::to_string(number)).finishHex();
  kernel.manifest = "manifest 1\nentry attention\ntemplate attention\noperator window\ntarget sm_90a\n"
                    "config key_tile=" +
                    std::to_string(16 * (number + 1)) + "\nrevision 00\ngrid 1 ; 1 ; 1\nthreads 128\n";
  // Half noise, half zeros: compressible but not empty when compressed.
  std::mt19937 random(static_cast<uint32_t>(number));
  kernel.binary.resize(bytes);
  for (size_t i = 0; i < bytes / 2; ++i)
    kernel.binary[i] = static_cast<std::byte>(random());
  return kernel;
}

StoredChoice makeChoice(int number, bool tuned) {
  StoredChoice choice;
  choice.problem = "window dtype=bf16 | problem=" + std::to_string(number);
  choice.device = "gpu sm_90a";
  choice.content = makeKernel(number, 0).content;
  choice.tuned = tuned;
  choice.provenance = "driver=580.1 nvrtc=13.0";
  choice.evidence = {{"attention", "key_tile=16", "winner", 0.5, 0.9, ""},
                     {"attention", "key_tile=32", "rejected", 0, 0, "largest difference 0.5"}};
  return choice;
}

void expectKernel(KernelStore &store, int number, size_t bytes) {
  StoredKernel expected = makeKernel(number, bytes);
  auto found = store.findKernel(expected.content);
  ASSERT_TRUE(found) << found.status().toString();
  ASSERT_TRUE(found->has_value()) << "kernel " << number;
  EXPECT_EQ((*found)->content, expected.content);
  EXPECT_EQ((*found)->manifest, expected.manifest);
  EXPECT_EQ((*found)->binary, expected.binary);
}

bool holdsKernel(KernelStore &store, int number) {
  auto found = store.findKernel(makeKernel(number, 0).content);
  EXPECT_TRUE(found) << "a lookup never fails: " << found.status().toString();
  return found && found->has_value();
}

} // namespace nsa
