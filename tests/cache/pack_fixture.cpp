#include "tests/cache/pack_fixture.h"

namespace nsa {

StoredRoute makeRoute(int number, int64_t threshold) {
  StoredRoute route;
  route.family = "dtype=bf16 qk_dim=64 kv_heads=" + std::to_string(number);
  route.device = "gpu sm_90a";
  route.name = "window.attention_from";
  route.threshold = threshold;
  route.provenance = "driver=580.1";
  route.evidence = {{1024, "row_attention", 0.5, 1, ""}, {1024, "attention", 0.6, 1.2, "slower"}};
  return route;
}

void expectKernel(Pack &pack, int number, size_t bytes) {
  const StoredKernel expected = makeKernel(number, bytes);
  const std::optional<StoredKernel> found = pack.findKernel(expected.content);
  ASSERT_TRUE(found.has_value()) << "kernel " << number;
  EXPECT_EQ(found->manifest, expected.manifest);
  EXPECT_EQ(found->binary, expected.binary);
}

void PackTest::fill(const std::vector<int> &numbers, const std::string &file) const {
  std::string warning;
  std::unique_ptr<KernelStore> store = openStore(file, warning);
  EXPECT_EQ(warning, "");
  for (const int number : numbers) {
    const StoredChoice choice = makeChoice(number, true);
    ASSERT_TRUE(store->put(makeKernel(number), &choice).isOk());
    ASSERT_TRUE(store->putRoute(makeRoute(number)).isOk());
  }
}

Result<PackReport> PackTest::exportFrom(const std::string &file, const std::string &target, PackRequest request) const {
  Result<CacheFile> from = CacheFile::open(file);
  if (!from)
    return from.status();
  request.source = "0.5 (test)";
  return writePack(*from, target, request);
}

void PackTest::makePack(int count) const {
  std::vector<int> numbers;
  for (int i = 0; i < count; ++i)
    numbers.push_back(i);
  fill(numbers, path);
  PackRequest request;
  request.existing = ReplacingFile::Existing::kReplace;
  const Result<PackReport> report = exportFrom(path, packPath, request);
  ASSERT_TRUE(report) << report.status().toString();
  EXPECT_EQ(report->kernels, count);
}

std::unique_ptr<Pack> PackTest::openPack(const SignatureRules &rules) const {
  Result<std::unique_ptr<Pack>> pack = Pack::open(packPath, rules);
  EXPECT_TRUE(pack) << pack.status().toString();
  return pack ? std::move(*pack) : nullptr;
}

std::string PackTest::refusal(const SignatureRules &rules) const {
  const Result<std::unique_ptr<Pack>> pack = Pack::open(packPath, rules);
  EXPECT_FALSE(pack) << "it was opened";
  return pack ? "" : pack.status().toString();
}

} // namespace nsa
