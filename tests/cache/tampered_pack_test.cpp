// The shipped pack with one byte changed, at drawn places of the file and of what is signed or leads there, under the
// policy that wants its signature: it is refused, or the byte lies where nothing is signed and changes no answer and no
// row, or it lies in a binary, which never serves then. A reader that takes rows compares the whole file before.
#include "cache/pack.h"
#include "cache/pack_writer.h"
#include "cache/verification.h"
#include "tests/harness/scratch.h"
#include "tests/harness/seed.h"

#include <array>
#include <filesystem>
#include <functional>

namespace nsa {
namespace {

constexpr int kPlaces = 200, kDailyPlaces = 40;

// What a changed byte has led to, in places.
struct Outcomes {
  int places = 0, refused = 0, lost = 0, unsignedBytes = 0;
};

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
    for (const KernelSummary &kernel : kernels) {
      digests.emplace_back(kernel.content, kernel.digest);
      manifests.push_back((*source->kernel(kernel.content))->manifest);
    }
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

  size_t numberAt(size_t offset, size_t bytes) const {
    size_t number = 0;
    for (size_t i = 0; i < bytes; ++i)
      number = number << 8 | static_cast<uint8_t>(good[offset + i]);
    return number;
  }
  size_t pageBytes() const { return numberAt(16, 2); }
  // The first pages of tables and indexes, by name.
  std::vector<std::pair<std::string, size_t>> roots() const {
    Result<PackFile> file = PackFile::open(path);
    EXPECT_TRUE(file) << file.status().toString();
    std::vector<std::pair<std::string, size_t>> found;
    sqlite::Query query(file->connection, "SELECT name, rootpage FROM sqlite_schema");
    while (query.step())
      found.emplace_back(query.text(0), static_cast<size_t>(query.integer(1)));
    return found;
  }
  // The offsets of the pages from this one down that name others.
  void addInner(size_t page, std::vector<size_t> &inner) const {
    const size_t offset = (page - 1) * pageBytes();
    if (good[offset] != 2 && good[offset] != 5) // of an index and of a table
      return;
    inner.push_back(offset);
    for (size_t cell = 0, cells = numberAt(offset + 3, 2); cell < cells; ++cell)
      addInner(numberAt(offset + numberAt(offset + 12 + 2 * cell, 2), 4), inner);
    addInner(numberAt(offset + 8, 4), inner);
  }
  // A piece of a manifest that lies on one page.
  size_t drawInManifest(std::mt19937_64 &random) const {
    constexpr size_t kPiece = 24;
    for (;;) {
      const std::string &manifest = manifests[random() % manifests.size()];
      const size_t at = good.find(manifest.substr(random() % (manifest.size() - kPiece), kPiece));
      if (at != std::string::npos)
        return at + random() % kPiece;
    }
  }

  // Changes the byte at each place that `draw` gives, and no other.
  Outcomes changeBytes(const std::function<size_t(std::mt19937_64 &)> &draw);
  void write(size_t at, char byte) const {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    EXPECT_TRUE(file.seekp(static_cast<std::streamoff>(at)).put(byte).flush());
  }
  void check(Outcomes &outcomes) const;

  test::Scratch scratch;
  const std::string path = scratch.file("kernels.nsapack");
  SignatureRules rules;
  std::string good, exported, merged;
  std::vector<StoredChoice> choices;
  std::vector<StoredRoute> routes;
  std::vector<std::string> manifests;
  std::vector<std::pair<std::string, Digest::Bytes>> digests; // of kernels
};

void TamperedPack::check(Outcomes &outcomes) const {
  const Result<std::unique_ptr<Pack>> pack = Pack::open(path, rules);
  Result<CacheFile> source = openSource(path, rules, Databases::kRefused);
  if (!pack) {
    ++outcomes.refused;
    EXPECT_NE(pack.status().toString().find(path), std::string::npos) << pack.status().toString();
    EXPECT_FALSE(source) << "an engine refuses it: " << pack.status().toString();
    return;
  }
  const int kernels = lostBy(**pack);
  outcomes.lost += kernels > 0;
  EXPECT_TRUE(kernels == 0 || !source) << "rows were taken from a pack that lacks " << kernels << " kernels";
  if (!source)
    return;
  ++outcomes.unsignedBytes;
  EXPECT_EQ(*source->choices(), choices);
  EXPECT_EQ(*source->routes(), routes);
  EXPECT_EQ(exportedFrom(*source), exported);
  EXPECT_EQ(mergedFrom(*source), merged);
}

Outcomes TamperedPack::changeBytes(const std::function<size_t(std::mt19937_64 &)> &draw) {
  std::mt19937_64 random(test::freshSeed());
  Outcomes outcomes{.places = test::drawnCases(kPlaces, kDailyPlaces)};
  for (int place = 0; place < outcomes.places && !HasFailure(); ++place) {
    const size_t at = draw(random);
    SCOPED_TRACE("place " + std::to_string(place) + ", byte " + std::to_string(at));
    write(at, static_cast<char>(good[at] ^ (1 + random() % 255)));
    check(outcomes);
    write(at, good[at]);
  }
  std::printf("%d places: %d refused, %d cost a kernel, %d in bytes that mean nothing\n", outcomes.places,
              outcomes.refused, outcomes.lost, outcomes.unsignedBytes);
  return outcomes;
}

TEST_F(TamperedPack, OneByteOfTheShippedPack) {
  const Outcomes outcomes = changeBytes([&](std::mt19937_64 &random) { return random() % good.size(); });
  // Three quarters of the file are binaries.
  EXPECT_TRUE(outcomes.lost > 0 || outcomes.places < kDailyPlaces);
}

// A quarter of the places each: the page of the schema, that of facts and signatures, pages that name other pages, and
// manifests, each byte of which is signed.
TEST_F(TamperedPack, OneByteOfWhatIsSigned) {
  enum Kind { kSchema, kFacts, kInner, kManifest, kKinds };
  std::array<std::vector<size_t>, kManifest> pages; // their offsets
  pages[kSchema] = {0};
  for (const auto &[name, root] : roots()) {
    if (name == "pack")
      pages[kFacts].push_back((root - 1) * pageBytes());
    addInner(root, pages[kInner]);
  }
  ASSERT_EQ(pages[kFacts].size(), 1u);
  ASSERT_GT(pages[kInner].size(), 10u);
  size_t next = 0;
  const Outcomes outcomes = changeBytes([&](std::mt19937_64 &random) {
    const size_t kind = next++ % kKinds;
    if (kind == kManifest)
      return drawInManifest(random);
    const size_t page = pages[kind][random() % pages[kind].size()];
    return page + random() % pageBytes();
  });
  EXPECT_GE(outcomes.refused, outcomes.places / kKinds);
  EXPECT_TRUE(outcomes.refused > 0 || outcomes.places < kKinds);
}

} // namespace
} // namespace nsa
