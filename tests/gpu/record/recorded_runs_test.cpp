// The records of GPU runs that the repository holds: each is evidence, of a commit of this history, and says how old it
// is against the code that it describes.
#include "tests/gpu/record/gpu_record.h"
#include "tests/harness/scratch.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <gtest/gtest.h>
#include <memory>

namespace nsa::test {
namespace {

constexpr const char *kCode = "compiler templates runtime autotune cache";

// What git says in the source tree; false: it fails.
bool askGit(const std::string &question, std::string &answer) {
  answer.clear();
  std::unique_ptr<FILE, int (*)(FILE *)> pipe(popen(("git -C '" NSA_SOURCE_DIR "' " + question + " 2>&1").c_str(), "r"),
                                              pclose);
  std::array<char, 256> part{};
  while (pipe && std::fgets(part.data(), part.size(), pipe.get()))
    answer += part.data();
  while (!answer.empty() && answer.back() == '\n')
    answer.pop_back();
  return pipe && pclose(pipe.release()) == 0;
}

class RecordedRuns : public ::testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Of, RecordedRuns,
                         ::testing::Values("gpu_tests", "gpu_memcheck", "gpu_racecheck", "gpu_synccheck"),
                         [](const auto &info) { return std::string(info.param); });

TEST_P(RecordedRuns, AreEvidenceAndSayTheirAge) {
  std::string answer;
  if (!askGit("rev-parse HEAD", answer))
    GTEST_SKIP() << "no git, or no history here: " << answer;
  int records = 0;
  for (const auto &entry : std::filesystem::directory_iterator(NSA_SOURCE_DIR "/bench/results")) {
    const std::filesystem::path path = entry.path() / (std::string(GetParam()) + ".json");
    if (!std::filesystem::exists(path))
      continue;
    ++records;
    SCOPED_TRACE(path.string());
    const Json record = Json::parse(readFile(path), nullptr, false);
    ASSERT_FALSE(record.is_discarded());
    for (const std::string &fault : faultsOf(record))
      ADD_FAILURE() << fault;
    const std::string source = record["machine"].value("source", "");
    ASSERT_EQ(source.find_first_not_of("0123456789abcdef"), std::string::npos) << source;
    if (std::string shallow; askGit("rev-parse --is-shallow-repository", shallow) && shallow == "true")
      GTEST_SKIP() << "a shallow clone does not know how old " << source << " is";
    ASSERT_TRUE(askGit("merge-base --is-ancestor " + source + " HEAD", answer))
        << "machine.source " << source << " is no commit of this history";
    ASSERT_TRUE(askGit("rev-list --count " + source + "..HEAD -- " + kCode, answer)) << answer;
    std::printf("%s/%s: %s of %s, older than the code by %s commits that touch %s\n", entry.path().filename().c_str(),
                GetParam(), source.c_str(), record["machine"].value("date", "").c_str(), answer.c_str(), kCode);
  }
  if (records == 0)
    GTEST_SKIP() << "no " << GetParam() << " is recorded in bench/results";
}

} // namespace
} // namespace nsa::test
