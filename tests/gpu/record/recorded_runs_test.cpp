// The records of GPU runs and of mutants that the repository holds: each is evidence, of a commit of this history, and
// says how old it is against the code that it describes.
#include "tests/gpu/record/gpu_record.h"
#include "tools/render_tables/records.h"

#include <algorithm>
#include <cstdio>
#include <gtest/gtest.h>
#include <set>

namespace nsa::test {
namespace {

class RecordedRuns : public ::testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Of, RecordedRuns,
                         ::testing::Values("gpu_tests", "gpu_memcheck", "gpu_racecheck", "gpu_synccheck", "gpu_torch",
                                           "mutants"),
                         [](const auto &info) { return std::string(info.param); });

TEST_P(RecordedRuns, AreEvidenceAndSayTheirAge) {
  tables::Records records(NSA_SOURCE_DIR);
  const std::vector<std::string> names = records.find(GetParam());
  if (names.empty())
    GTEST_SKIP() << "no " << GetParam() << " is recorded in bench/results";
  bool isAgeKnown = true;
  for (const std::string &name : names) {
    // Refuses changes that no commit has, and commits of another history.
    const Result<const tables::Json *> record = records.read(name);
    ASSERT_TRUE(record.isOk()) << record.status().toString();
    const std::string kind = GetParam();
    for (const std::string &fault : kind == "mutants"     ? mutantFaultsOf(**record)
                                    : kind == "gpu_torch" ? torchFaultsOf(**record)
                                                          : faultsOf(**record))
      ADD_FAILURE() << name << ": " << fault;
    const std::optional<int64_t> age = records.age(**record);
    isAgeKnown = isAgeKnown && age.has_value();
    std::printf("%s: %s, %s commits to the code since\n", name.c_str(),
                (**record)["machine"].value("source", "").c_str(), age ? std::to_string(*age).c_str() : "unknown");
  }
  if (!isAgeKnown && !HasFailure())
    GTEST_SKIP() << "no git, or a shallow clone: the age of a record is not known";
}

// Numbers of a GPU on which the tests did not run, or not under memcheck, are of code that may be wrong there.
TEST(RecordedRunsOfDevices, EveryGpuWithResultsHasRunTheTests) {
  tables::Records records(NSA_SOURCE_DIR);
  const std::vector<std::string> names = records.find();
  std::set<std::string> folders;
  for (const std::string &name : names) {
    const Result<const tables::Json *> record = records.read(name);
    ASSERT_TRUE(record.isOk()) << record.status().toString();
    if ((**record).value("machine", Json::object()).value("device", Json::object()).value("kind", "") == "gpu")
      folders.insert(name.substr(0, name.find('/')));
  }
  EXPECT_TRUE(folders.contains("h200")) << "the repository has results of an H200, and they name no GPU";
  for (const std::string &folder : folders)
    for (const char *run : {"gpu_tests", "gpu_memcheck"})
      EXPECT_TRUE(std::ranges::binary_search(names, folder + "/" + run))
          << "bench/results/" << folder << " has results, and no " << run << ".json: run-gpu-tests --record writes it";
}

} // namespace
} // namespace nsa::test
