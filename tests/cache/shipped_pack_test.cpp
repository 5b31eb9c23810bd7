// The packs that come with the project: each is signed by the key beside it, and each of its rows is whole and of this
// tree's compiler and templates, so that it serves. After a change to either, ship it anew (CONTRIBUTING.md)
// or remove the pack: no other test notices that it serves no process.
#include "cache/rows/kernel_rows.h"
#include "cache/statistics.h"
#include "cache/verification.h"
#include "runtime/base/compiler_revision.h"
#include "runtime/base/manifest.h"
#include "runtime/engine/choices/provenance.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace nsa {
namespace {

constexpr uintmax_t kMostBytes = 11 << 20; // of one that is committed

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
    const std::string key = std::filesystem::path(entry.path()).replace_extension(".public").string();
    const Result<PublicKey> trusted = PublicKey::read(key);
    ASSERT_TRUE(trusted) << trusted.status().toString() << "\n`tools/ship-pack` signs a pack";
    const SignatureRules rules{.requireSignature = true, .trusted = {*trusted}};
    EXPECT_EQ(verifyCache(entry.path().string(), rules).findings, std::vector<std::string>());
    Result<CacheFile> pack = openSource(entry.path().string(), rules, Databases::kRefused);
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

// The section about the pack in docs/results.md is rendered from the counts in the JSON file beside it.
TEST(ShippedPack, ItsCountsAreThoseOfItsRows) {
  for (const auto &entry : std::filesystem::directory_iterator(NSA_SHIPPED_PACKS)) {
    if (entry.path().extension() != ".nsapack")
      continue;
    std::ifstream file(std::filesystem::path(entry.path()).replace_extension(".json"));
    const nlohmann::json told = nlohmann::json::parse(file, nullptr, false);
    ASSERT_TRUE(told.is_object()) << "no JSON beside " << entry.path();
    Result<CacheFile> pack = CacheFile::open(entry.path().string());
    ASSERT_TRUE(pack) << pack.status().toString();
    const Result<std::vector<StoredChoice>> choices = pack->choices();
    ASSERT_TRUE(choices) << choices.status().toString();
    std::set<std::string> kernels;
    int tuned = 0, earlier = 0;
    for (const StoredChoice &choice : *choices) {
      kernels.insert(choice.content);
      tuned += choice.tuned;
      // runtime/engine/choices/provenance.h
      earlier += choice.tuned && choice.provenance.find(" remade=") != std::string::npos;
    }
    const Result<CacheStatistics> counts = summarizeCache(*pack);
    ASSERT_TRUE(counts) << counts.status().toString();
    EXPECT_EQ(counts->remadeChoices, earlier) << "as nsa cache stats has it";
    double logarithms = 0;
    for (const nlohmann::json &choice : told["choices"])
      if (!choice["ratio_to_default"].is_null())
        logarithms -= std::log(choice["ratio_to_default"].get<double>());
    const nlohmann::json expected = {{"choices", choices->size()},
                                     {"kernels", kernels.size()},
                                     {"tuned", tuned},
                                     {"tuned_by_this_revision", tuned - earlier},
                                     {"tuned_by_an_earlier_revision", earlier},
                                     {"default_over_winner", std::round(1e3 * std::exp(logarithms / tuned)) / 1e3}};
    EXPECT_EQ(told["counts"], expected) << entry.path() << " has other rows than the file beside it tells of";
  }
}

// The JSON file is written by hand from `nsa cache list --json`, so that it can be left behind when the pack is made
// anew.
TEST(ShippedPack, ItsRecordIsThatOfItsRows) {
  for (const auto &entry : std::filesystem::directory_iterator(NSA_SHIPPED_PACKS)) {
    if (entry.path().extension() != ".nsapack")
      continue;
    SCOPED_TRACE(entry.path().filename().string());
    std::ifstream file(std::filesystem::path(entry.path()).replace_extension(".json"));
    const nlohmann::json told = nlohmann::json::parse(file, nullptr, false);
    ASSERT_TRUE(told.is_object()) << "no JSON beside " << entry.path();
    Result<CacheFile> pack = CacheFile::open(entry.path().string());
    ASSERT_TRUE(pack) << pack.status().toString();
    const Result<std::vector<StoredChoice>> choices = pack->choices();
    const Result<std::vector<KernelSummary>> kernels = pack->kernels();
    const Result<std::vector<StoredRoute>> routes = pack->routes();
    ASSERT_TRUE(choices && kernels && routes);

    std::map<std::string, const KernelSummary *> kernelOf;
    for (const KernelSummary &kernel : *kernels)
      kernelOf.emplace(kernel.content, &kernel);
    std::set<std::string> rows, lines;
    std::set<std::string> madeBy;
    for (const StoredChoice &choice : *choices) {
      ASSERT_TRUE(kernelOf.contains(choice.content)) << choice.problem;
      const KernelSummary &kernel = *kernelOf.at(choice.content);
      rows.insert(choice.problem + " | " + kernel.templateName + " | " + kernel.config);
      EXPECT_EQ(told["device"], choice.device);
      constexpr std::string_view kRemade = " remade="; // runtime/engine/choices/provenance.h
      const size_t remade = choice.provenance.find(kRemade);
      madeBy.insert(remade == std::string::npos ? revisionOf(choice.provenance)
                                                : choice.provenance.substr(remade + kRemade.size()));
    }
    for (const nlohmann::json &choice : told["choices"])
      lines.insert(choice["problem"].get<std::string>() + " | " + choice["template"].get<std::string>() + " | " +
                   choice["config"].get<std::string>());
    EXPECT_EQ(lines, rows);
    EXPECT_EQ(madeBy, std::set<std::string>{revisionOf(told["provenance"].get<std::string>())})
        << "the revision that made the kernels";

    std::set<std::string> thresholds, toldThresholds;
    for (const StoredRoute &route : *routes)
      thresholds.insert(route.name + " | " + route.family + " | " +
                        (route.threshold == StoredRoute::kNever ? "never" : std::to_string(route.threshold)));
    for (const nlohmann::json &route : told["thresholds"])
      toldThresholds.insert(route["name"].get<std::string>() + " | " + route["family"].get<std::string>() + " | " +
                            (route["threshold"].is_string() ? route["threshold"].get<std::string>()
                                                            : std::to_string(route["threshold"].get<int64_t>())));
    EXPECT_EQ(toldThresholds, thresholds);

    // The last source tells of the last compilation, which is later than what was tuned.
    ASSERT_FALSE(told["sources"].empty());
    std::string date;
    for (const nlohmann::json &source : told["sources"]) {
      EXPECT_GE(source["date"].get<std::string>(), date) << source["what"];
      date = source["date"];
    }
    EXPECT_GE(date, told["tuned"]["date"].get<std::string>());
  }
}

} // namespace
} // namespace nsa
