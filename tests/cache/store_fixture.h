// What the cache tests share: a private directory per test, kernels and choices made of a number, and a back door
// to the file through sqlite itself.
#pragma once

#include "cache/kernel_store.h"
#include "tests/harness/scratch.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <sys/types.h>

namespace nsa {

using test::readFile, test::writeFile;

class StoreTest : public testing::Test {
protected:
  test::Scratch scratch;
  std::string directory = scratch.path(); // mode 0700
  std::string path = scratch.file("kernels.db");

  // Opens and expects no warning.
  std::unique_ptr<KernelStore> openStore() const;
  std::unique_ptr<KernelStore> openStore(const std::string &file, std::string &warning, bool readOnly = false) const;

  // Runs SQL on the file behind the store's back; the first value of the first row.
  std::string sql(const std::string &statement) const;

  // Runs `body` as a user whom permission bits bind; its expectations count as this test's.
  static void asOrdinaryUser(const std::function<void()> &body);
};

// Runs SQL on a file through sqlite itself; the first value of the first row.
std::string runSql(const std::string &file, const std::string &statement);

// A child that runs `body` and exits 0 when no expectation in it failed; one that hangs is ended by SIGALRM.
pid_t startProcess(const std::function<void()> &body);
void expectGoodEnd(pid_t child);

// Ours by its header, and nothing of it readable.
std::string damagedDatabase(size_t bytes);

StoredKernel makeKernel(int number, size_t bytes = 20000);
StoredChoice makeChoice(int number, bool tuned);

// Expects the kernel of that number, bit for bit.
void expectKernel(KernelStore &store, int number, size_t bytes = 20000);
bool holdsKernel(KernelStore &store, int number);

} // namespace nsa
