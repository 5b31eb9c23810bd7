// The programs of docs/language.md are right, stand in the one layout, and have the output that the page shows.
#include "compiler/check/Check.h"
#include "compiler/language/syntax/Parser.h"
#include "compiler/language/types/Declarations.h"
#include "tests/harness/scratch.h"

#include <gtest/gtest.h>

#include <regex>
#include <sstream>

namespace nsa {
namespace {

// A text between two lines ```.
struct Fence {
  std::string kind, text;
};

std::string page() { return test::readFile(NSA_SOURCE_DIR "/docs/language.md"); }

std::vector<Fence> fences() {
  std::istringstream lines(page());
  std::vector<Fence> found;
  bool isOpen = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      isOpen = !isOpen;
      if (isOpen)
        found.push_back({line.substr(3), ""});
    } else if (isOpen) {
      found.back().text += line + "\n";
    }
  }
  return found;
}

// A folder with the programs of the page, and the libraries that they import.
class LanguagePage : public testing::Test {
protected:
  LanguagePage() {
    std::filesystem::copy(NSA_SOURCE_DIR "/templates/tile/library", scratch.file("library"));
    for (const Fence &fence : fences())
      if (fence.kind == "tile" || fence.kind == "tile-wrong")
        scratch.write(nameOf(fence) + ".tile", fence.text);
  }

  static std::string nameOf(const Fence &fence) {
    std::smatch match;
    EXPECT_TRUE(std::regex_search(fence.text, match, std::regex("(^|\n)kernel (\\w+)"))) << fence.text;
    return match.str(2);
  }
  CheckReport check(const std::string &name, CheckRequest request = {}) {
    request.path = scratch.file(name + ".tile");
    Result<CheckReport> report = checkProgram(request);
    EXPECT_TRUE(report) << report.status().toString();
    return report ? std::move(*report) : CheckReport();
  }

  test::Scratch scratch;
};

TEST_F(LanguagePage, ProgramsAreRightAndLaidOut) {
  int programs = 0;
  for (const Fence &fence : fences()) {
    if (!fence.kind.starts_with("tile"))
      continue;
    EXPECT_EQ(formatProgram("page", fence.text).text, fence.text);
    if (fence.kind != "tile")
      continue;
    const CheckReport report = check(nameOf(fence));
    EXPECT_TRUE(report.isGood);
    EXPECT_EQ(report.messages, "") << nameOf(fence);
    ++programs;
  }
  EXPECT_GE(programs, 4);
}

TEST_F(LanguagePage, OutputIsWhatIsPrinted) {
  int outputs = 0;
  const std::vector<Fence> all = fences();
  for (size_t i = 0; i < all.size(); ++i) {
    std::smatch match;
    const std::regex explains("^\\$ build/bin/nsa check --explain --target (\\w+) (\\w+)\\.tile\n");
    if (std::regex_search(all[i].text, match, explains)) {
      EXPECT_EQ(check(match.str(2), {.target = match.str(1), .explains = true}).text, match.suffix().str());
      ++outputs;
    }
    if (all[i].kind == "tile-wrong" && i + 1 < all.size()) {
      std::string messages = check(nameOf(all[i])).messages;
      for (size_t at = 0; (at = messages.find(scratch.file(""), at)) != std::string::npos;)
        messages.erase(at, scratch.file("").size());
      EXPECT_EQ(messages, all[i + 1].text);
      ++outputs;
    }
  }
  EXPECT_EQ(outputs, 2);
}

// The embed tests compile the installed host, and run the installed program.
TEST_F(LanguagePage, TheHostAndItsProgramAreInstalled) {
  const std::string folder = NSA_SOURCE_DIR "/docs/examples/programs/";
  int found = 0;
  for (const Fence &fence : fences()) {
    const bool isProgram = fence.kind == "tile" && nameOf(fence) == "scaled_sum";
    if (!isProgram && fence.kind != "c")
      continue;
    EXPECT_EQ(fence.text, test::readFile(folder + (isProgram ? "scaled_sum.tile" : "host.c")));
    ++found;
  }
  EXPECT_EQ(found, 2);
}

// The row of a table begins with names in code; what stands in front of a parenthesis is a function.
TEST_F(LanguagePage, FunctionsOfTheTableAreBuiltIn) {
  const std::string text = page();
  const size_t begin = text.find("## Built-in functions"), end = text.find("\n## ", begin + 1);
  const std::string section = text.substr(begin, end - begin);
  const std::regex row("\n\\| (`[^|]*) \\|"), call("`(\\w+)\\(");
  std::set<std::string> named;
  for (std::sregex_iterator line(section.begin(), section.end(), row), none; line != none; ++line) {
    const std::string cell = line->str(1);
    for (std::sregex_iterator match(cell.begin(), cell.end(), call); match != none; ++match)
      named.insert(match->str(1));
  }
  for (const std::string &name : named)
    EXPECT_TRUE(language::isBuiltInFunction(name) || name == "roundup") << name; // of constants alone
  EXPECT_EQ(named.size(), 24U);
}

} // namespace
} // namespace nsa
