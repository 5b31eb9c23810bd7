// Packs made of the store fixture's kernels. Thread-safety: one thread.
#pragma once

#include "cache/cache_file.h"
#include "cache/pack.h"
#include "cache/pack_writer.h"
#include "tests/cache/store_fixture.h"

#include <string>
#include <vector>

namespace nsa {

class PackTest : public StoreTest {
protected:
  std::string packPath = scratch.file("kernels.nsapack");

  // Kernels and tuned choices of these numbers, each with a route, in a database.
  void fill(const std::vector<int> &numbers, const std::string &file) const;
  // A pack of kernels 0 to count - 1.
  void makePack(int count = 5) const;
  Result<PackReport> exportFrom(const std::string &file, const std::string &target, PackRequest request = {}) const;
  // Opens and expects no error.
  std::unique_ptr<Pack> openPack(const SignatureRules &rules = {}) const;
  // The reason why it is not used.
  std::string refusal(const SignatureRules &rules = {}) const;
};

StoredRoute makeRoute(int number, int64_t threshold = 4096);
void expectKernel(Pack &pack, int number, size_t bytes = 20000);

} // namespace nsa
