// A test that returns before its first assertion counts as passed although it checked nothing. What cannot run is
// skipped with its reason or not instantiated. Held over the text of every test: a body reaches from its TEST macro to
// the brace that stands at the beginning of a line, which clang-format guarantees. The same holds of the helpers that
// the suites of tests/harness check with: a body reaches from its head to the brace below the head's first letter.
// GoogleTest counts no assertions that hold, so a run cannot tell.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {
namespace {

bool holdsAnyOf(std::string_view line, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words)
    if (line.find(word) != std::string_view::npos)
      return true;
  return false;
}

// Whether a lambda begins in the line and reaches further.
bool opensLambda(std::string_view line) {
  static const std::regex introducer(R"([=(,{] ?\[[^\]\[]*\] ?[({].*)");
  std::match_results<std::string_view::const_iterator> match;
  if (!std::regex_search(line.begin(), line.end(), match, introducer))
    return false;
  const std::string rest = match.str();
  return rest.find('{', 1) == std::string::npos || std::ranges::count(rest, '{') > std::ranges::count(rest, '}');
}

bool beginsTest(std::string_view line) {
  return line.starts_with("TEST(") || line.starts_with("TEST_F(") || line.starts_with("TEST_P(");
}

// `void check...(`, `void expect...(` or `void run...(`, of a class or not.
bool beginsHelper(const std::string &line) {
  static const std::regex head(R"(^ *(static |inline )*void (\w+::)*(check|expect|run)([A-Z]\w*)?\(.*)");
  return std::regex_match(line, head);
}

// The numbers of the lines where a test, or a helper of tests where `helpersToo`, leaves without an assertion before
// it. A return because of a failure or a skip is told by that, and a lambda's return leaves the lambda alone.
std::vector<int> earlyReturns(std::istream &source, bool helpersToo) {
  std::vector<int> found;
  bool isInside = false, hasChecked = false;
  std::string line, before, end, lambdaEnd; // the beginnings of the lines that end the body and the outermost lambda
  for (int number = 1; std::getline(source, line); before = line, ++number) {
    const bool isHelper = helpersToo && !isInside && beginsHelper(line);
    if (isHelper || beginsTest(line)) {
      isInside = !line.ends_with(";") && !line.ends_with("}"); // a declaration, or all in one line
      hasChecked = false;
      end = std::string(line.find_first_not_of(' '), ' ') + "}";
      lambdaEnd.clear();
    } else if (line == end) {
      isInside = false;
    } else if (isInside && holdsAnyOf(line, {"EXPECT_", "ASSERT_", "FAIL()", "GTEST_SKIP"})) {
      hasChecked = true;
    } else if (isInside && !lambdaEnd.empty()) {
      if (line.starts_with(lambdaEnd))
        lambdaEnd.clear();
    } else if (isInside && opensLambda(line)) {
      lambdaEnd = std::string(line.find_first_not_of(' '), ' ') + "}";
    } else if (isInside && !hasChecked && line.find(" return;") != std::string::npos &&
               !holdsAnyOf(before + line, {"HasFailure()", "HasFatalFailure()", "IsSkipped()"})) {
      found.push_back(number);
    }
  }
  return found;
}

constexpr const char *kBodies = "TEST(A, ReturnsAtOnce) {\n"
                                "  if (isCut)\n"
                                "    return;\n"
                                "  EXPECT_TRUE(x);\n"
                                "}\n"
                                "void helper() {\n"
                                "  return;\n"
                                "}\n"
                                "TEST_P(A, ReturnsAfterAFailure) {\n"
                                "  check(x);\n"
                                "  if (HasFailure())\n"
                                "    return;\n"
                                "  ASSERT_TRUE(x);\n"
                                "  return;\n"
                                "}\n"
                                "TEST_F(A, ReturnsFromALambdaAndThenItself) {\n"
                                "  const auto find = [&](int x) {\n"
                                "    if (x)\n"
                                "      return;\n"
                                "  };\n"
                                "  run([&] { ++x; });\n"
                                "  if (isCut)\n"
                                "    return; // because\n"
                                "}\n";

constexpr const char *kHelpers = "class A {\n"
                                 "  void check(int x,\n"
                                 "             int y) {\n"
                                 "    if (isCut)\n"
                                 "      return;\n"
                                 "    EXPECT_TRUE(x);\n"
                                 "    return;\n"
                                 "  }\n"
                                 "  static void expectSame(int x);\n"
                                 "  void write(int x) {\n"
                                 "    return;\n"
                                 "  }\n"
                                 "};\n"
                                 "void A::runAll() {\n"
                                 "  return;\n"
                                 "}\n"
                                 "void runs() {\n"
                                 "  return;\n"
                                 "}\n";

TEST(TestBodies, AnEarlyReturnIsFound) {
  std::istringstream source(kBodies);
  EXPECT_EQ(earlyReturns(source, true), (std::vector<int>{3, 23}));
}

TEST(TestBodies, AnEarlyReturnOfAHelperIsFound) {
  std::istringstream source(kHelpers), again(kHelpers);
  EXPECT_EQ(earlyReturns(source, true), (std::vector<int>{5, 15}));
  EXPECT_EQ(earlyReturns(again, false), std::vector<int>{});
}

TEST(TestBodies, NoTestReturnsBeforeItsFirstAssertion) {
  int files = 0;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(NSA_SOURCE_DIR "/tests")) {
    if (entry.path().extension() != ".cpp")
      continue;
    ++files;
    std::ifstream source(entry.path());
    const bool isOfHarness = entry.path().string().find("/tests/harness/") != std::string::npos;
    for (const int line : earlyReturns(source, isOfHarness))
      ADD_FAILURE()
          << entry.path().string() << ":" << line
          << " returns before any assertion: skip with GTEST_SKIP and a reason, or do not instantiate the test";
  }
  EXPECT_GT(files, 100) << "the tests are not below " NSA_SOURCE_DIR;
}

} // namespace
} // namespace nsa
