// The table of mutants is one that can be run: each text stands in its template, and each filter names tests that are
// there.
#include "tests/mutation/child_process.h"
#include "tests/mutation/mutant_run.h"
#include "tools/support/scratch_folder.h"

#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <tuple>

namespace nsa::mutation {
namespace {

TEST(MutantTable, EachTextStandsOnceInItsTemplate) {
  std::set<std::string_view> names;
  for (const Mutant &mutant : allMutants()) {
    SCOPED_TRACE(mutant.name);
    EXPECT_TRUE(names.insert(mutant.name).second) << "twice in the table";
    const Result<int> count = occurrences(mutant.file, mutant.before);
    ASSERT_TRUE(count) << count.status().toString();
    EXPECT_EQ(*count, 1) << mutant.before;
    EXPECT_NE(mutant.before, mutant.after);
  }
}

// One change is one mutant, which may name tests of several operators.
TEST(MutantTable, EachChangeStandsOnce) {
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, std::string_view> changes;
  for (const Mutant &mutant : allMutants()) {
    const auto [known, isNew] = changes.try_emplace({mutant.file, mutant.before, mutant.after}, mutant.name);
    EXPECT_TRUE(isNew) << mutant.name << " changes what " << known->second << " changes";
  }
}

TEST(MutantTable, EveryOperatorHasMutants) {
  std::string operators;
  for (const Mutant &mutant : allMutants())
    if (!mutant.isDeviceCode() && mutant.equivalent.empty())
      operators += std::string(mutant.operators) + ", ";
  for (const char *op : {"dense", "window", "compress", "cmp", "select", "sel", "combine", "decode", "combine_bwd",
                         "dense_bwd", "window_bwd", "cmp_bwd", "invert", "compress_bwd", "sel_bwd", "nsa_bwd"})
    EXPECT_NE(operators.find(std::string(op) + ","), std::string::npos) << op;
}

// The tests of a program that a filter leaves, as GoogleTest lists them.
std::string listed(const std::string &program, const std::string &filter, const std::string &log) {
  Child child;
  child.program = program;
  child.arguments = {"--gtest_list_tests", "--gtest_filter=" + filter};
  child.log = log;
  child.limitSeconds = 60;
  const Result<ChildEnd> end = runChild(child);
  EXPECT_TRUE(end && end->exitCode == 0 && end->signal == 0) << program;
  std::ifstream file(log);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(MutantTable, EachPatternOfAFilterNamesATest) {
  Result<tools::ScratchFolder> folder = tools::ScratchFolder::make();
  ASSERT_TRUE(folder);
  std::set<std::pair<std::string, std::string>> patterns;
  for (const Mutant &mutant : allMutants()) {
    EXPECT_FALSE(mutant.filters().empty()) << mutant.name;
    for (const std::string &filter : mutant.filters()) {
      std::istringstream stream(filter);
      for (std::string pattern; std::getline(stream, pattern, ':');)
        patterns.emplace(ownFolder() + "/" + mutant.program(mutant.needsGpu() ? "gpu" : "cpu"), pattern);
    }
  }
  for (const auto &[program, pattern] : patterns)
    EXPECT_NE(listed(program, pattern, folder->file("log")).find('.'), std::string::npos)
        << program << " has no test " << pattern;
}

} // namespace
} // namespace nsa::mutation
