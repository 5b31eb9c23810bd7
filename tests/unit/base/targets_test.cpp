#include "runtime/model/targets.h"

#include <gtest/gtest.h>

using namespace nsa;

namespace {

TEST(Targets, CodeRunsOnNewerGpusOfItsMajorVersion) {
  const struct {
    const char *code, *device;
    std::optional<int> age;
  } rows[] = {{"sm_80", "sm_80", 0},   {"sm_80", "sm_86", 7},   {"sm_86", "sm_80", {}},  {"sm_90", "sm_90a", 1},
              {"sm_90a", "sm_90a", 0}, {"sm_90a", "sm_90", {}}, {"sm_80", "sm_90a", {}}, {"sm_100f", "sm_103", {}},
              {"sm_100", "sm_103", 4}, {"cpu", "cpu", 0},       {"cpu", "sm_80", {}},    {"sm_", "sm_80", {}},
              {"sm_8", "sm_80", {}},   {"", "sm_80", {}},       {"sm_80x", "sm_86", {}}};
  for (const auto &row : rows)
    EXPECT_EQ(ageOfCode(row.code, row.device), row.age) << row.code << " on " << row.device;
}

TEST(Targets, AreNamedInOrder) {
  EXPECT_EQ(targetNames(), "cpu, sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_120a");
  EXPECT_EQ(targetNames(" or "), "cpu, sm_80, sm_86, sm_89, sm_90a, sm_100a or sm_120a");
}

} // namespace
