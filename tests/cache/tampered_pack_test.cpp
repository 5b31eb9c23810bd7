// The shipped pack with one byte changed, at 200 drawn places, under the policy that wants its signature: it is
// refused, or the byte lies where nothing is signed and changes no answer and no row, or it lies in a binary, which
// never serves then. A reader that takes rows compares the whole file before.
#include "cache/pack.h"
#include "cache/pack_writer.h"
#include "cache/verification.h"
#include "tests/harness/scratch.h"
#include "tests/harness/seed.h"

#include <filesystem>

namespace nsa {
namespace {

constexpr int kPlaces = 200;

class TamperedPack : public testing::Test {
protected:
  void SetUp() override {
    const std::string shipped = NSA_SHIPPED_PACKS "/nvidia-h200";
    const Result<PublicKey> key = PublicKey::read(shipped + ".public");
    ASSERT_TRUE(key) << key.status().toString();
    rules = {.requireSignature = true, .trusted = {*key}};
    good = test::readFile(shipped + ".nsapack");
    test::writeFile(path, good);
    Result<CacheFile> source = openSource(path, rules, Databases::kRefused);
    ASSERT_TRUE(source) << source.status().toString();
    choices = *source->choices();
    routes = *source->routes();
    const std::vector<KernelSummary> kernels = *source->kernels();
    for (const KernelSummary &kernel : kernels)
      digests.emplace_back(kernel.content, kernel.digest);
    ASSERT_GT(choices.size(), 0u);
    ASSERT_GT(routes.size(), 0u);
    exported = exportedFrom(*source);
    merged = mergedFrom(*source);
  }

  // The digest of all rows and their evidence.
  std::string exportedFrom(CacheFile &source) const {
    const Result<PackReport> report = writePack(source, scratch.file("exported.nsapack"),
                                                {.source = "test", .existing = ReplacingFile::Existing::kReplace});
    return report ? toHex(report->digest) : report.status().toString();
  }
  static std::string mergedFrom(CacheFile &source) {
    std::string warning;
    Result<std::unique_ptr<KernelStore>> store = KernelStore::open({.path = ":memory:"}, warning);
    if (!store)
      return store.status().toString();
    const Result<MergeReport> report = (*store)->merge(source, Prefer::kSource);
    return report ? std::to_string(report->kernels) + " kernels, " + std::to_string(report->addedChoices) +
                        " choices, " + std::to_string(report->addedRoutes) + " routes, " +
                        std::to_string(report->damaged.size()) + " damaged"
                  : report.status().toString();
  }

  // What an engine gets is what was signed, or nothing of a kernel. How many kernels are lost.
  int lostBy(Pack &pack) const {
    int lost = 0;
    for (const auto &[content, digest] : digests) {
      const std::optional<StoredKernel> kernel = pack.findKernel(content);
      lost += !kernel;
      if (kernel)
        EXPECT_TRUE(Digest().field(content).field(kernel->manifest).field(kernel->binary).finish() == digest)
            << content;
    }
    for (const StoredChoice &choice : choices) {
      const std::optional<StoredChoice> answer = pack.findChoice(choice.problem, choice.device);
      EXPECT_TRUE(!answer || (answer->content == choice.content && answer->tuned == choice.tuned &&
                              answer->provenance == choice.provenance))
          << choice.problem;
    }
    for (const StoredRoute &route : routes) {
      const std::optional<StoredRoute> answer = pack.findRoute(route.family, route.device, route.name);
      EXPECT_TRUE(!answer || answer->threshold == route.threshold) << route.name;
    }
    return lost;
  }

  test::Scratch scratch;
  const std::string path = scratch.file("kernels.nsapack");
  SignatureRules rules;
  std::string good, exported, merged;
  std::vector<StoredChoice> choices;
  std::vector<StoredRoute> routes;
  std::vector<std::pair<std::string, Digest::Bytes>> digests; // of kernels
};

TEST_F(TamperedPack, OneByteOfTheShippedPack) {
  std::mt19937_64 random(test::freshSeed());
  int refused = 0, lost = 0, unsignedBytes = 0;
  const int places = test::drawnCases(kPlaces);
  for (int place = 0; place < places && !HasFailure(); ++place) {
    std::string bytes = good;
    const size_t at = random() % bytes.size();
    bytes[at] = static_cast<char>(bytes[at] ^ (1 + random() % 255));
    SCOPED_TRACE("place " + std::to_string(place) + ", byte " + std::to_string(at));
    test::writeFile(path, bytes);
    const Result<std::unique_ptr<Pack>> pack = Pack::open(path, rules);
    Result<CacheFile> source = openSource(path, rules, Databases::kRefused);
    if (!pack) {
      ++refused;
      EXPECT_NE(pack.status().toString().find(path), std::string::npos) << pack.status().toString();
      EXPECT_FALSE(source) << "an engine refuses it: " << pack.status().toString();
      continue;
    }
    const int kernels = lostBy(**pack);
    lost += kernels > 0;
    EXPECT_TRUE(kernels == 0 || !source) << "rows were taken from a pack that lacks " << kernels << " kernels";
    if (!source)
      continue;
    ++unsignedBytes;
    EXPECT_EQ(*source->choices(), choices);
    EXPECT_EQ(*source->routes(), routes);
    EXPECT_EQ(exportedFrom(*source), exported);
    EXPECT_EQ(mergedFrom(*source), merged);
  }
  std::printf("%d places: %d refused, %d cost a kernel, %d in bytes that mean nothing\n", places, refused, lost,
              unsignedBytes);
  // Three quarters of the file are binaries.
  EXPECT_TRUE(lost > 0 || places < kPlaces);
}

} // namespace
} // namespace nsa
