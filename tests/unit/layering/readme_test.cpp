// README stays what a newcomer reads in one go: few words, one table, commands and a program that are really there.
// docs/embedding.md shows a part of a program as it is. And docs/results.md, which has the other tables, lists its own
// sections.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace nsa {
namespace {

namespace files = std::filesystem;

constexpr size_t kMostWords = 700, kMostLines = 70; // of prose
constexpr const char *kFolderMap = "| folder | what is in it |";

std::string contentOf(const files::path &path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

const files::path kRoot = NSA_SOURCE_DIR;

// A Markdown page by its parts. Comments, which hold what is rendered, are left out.
struct Page {
  explicit Page(const std::string &text) {
    static const std::regex comments("<!--[^>]*-->");
    std::istringstream stream(std::regex_replace(text, comments, ""));
    bool inFence = false, inTable = false;
    for (std::string line; std::getline(stream, line);) {
      const bool isRow = !inFence && line.starts_with("|");
      if (isRow && !inTable)
        tables.push_back(line);
      inTable = isRow;
      if (line.starts_with("```")) {
        inFence = !inFence;
        if (inFence)
          fences.push_back({line.substr(3), ""});
      } else if (inFence) {
        fences.back().second += line + "\n";
      } else if (!isRow && line.find_first_not_of(' ') != std::string::npos) {
        prose.push_back(line);
      }
    }
  }

  size_t words() const {
    size_t count = 0;
    for (const std::string &line : prose) {
      std::istringstream stream(line);
      count += static_cast<size_t>(
          std::distance(std::istream_iterator<std::string>(stream), std::istream_iterator<std::string>()));
    }
    return count;
  }

  std::vector<std::string> prose;
  std::vector<std::string> tables;                         // the first row of each
  std::vector<std::pair<std::string, std::string>> fences; // language and text
};

const Page &readme() {
  static const Page page(contentOf(kRoot / "README.md"));
  return page;
}

TEST(Readme, APageIsReadByItsParts) {
  const Page page("# A b\n\n```c\nint x;\n```\nTwo words.\n| a | b |\n|---|---|\n| c | d |\n\n"
                  "<!-- table:x -->\n| e |\n|---|\n<!-- end -->\nLast.\n");
  EXPECT_EQ(page.words(), 6U) << "# is one";
  EXPECT_EQ(page.tables, (std::vector<std::string>{"| a | b |", "| e |"}));
  ASSERT_EQ(page.fences.size(), 1U);
  EXPECT_EQ(page.fences[0], (std::pair<std::string, std::string>("c", "int x;\n")));
}

TEST(Readme, IsOneScreenOfText) {
  EXPECT_GT(readme().words(), 300U);
  EXPECT_LE(readme().words(), kMostWords);
  EXPECT_LE(readme().prose.size(), kMostLines);
}

TEST(Readme, HasOneTableAndTheMapOfFolders) {
  ASSERT_EQ(readme().tables.size(), 2U) << "other tables belong into docs/results.md";
  EXPECT_EQ(readme().tables[1], kFolderMap);
  EXPECT_NE(contentOf(kRoot / "README.md").find("<!-- summary:"), std::string::npos)
      << "the other one is rendered from records";
}

TEST(Readme, ShowsTheFirstProgramAsItIs) {
  const auto shown = std::ranges::find(readme().fences, "c", &std::pair<std::string, std::string>::first);
  ASSERT_NE(shown, readme().fences.end());
  EXPECT_EQ(shown->second, contentOf(kRoot / "docs/examples/hello/hello.c"));
}

// The page has other line breaks than the program.
TEST(Embedding, ShowsAPartOfTheProgramThatTrains) {
  const auto withoutSpaces = [](std::string text) {
    std::erase_if(text, [](unsigned char c) { return std::isspace(c) != 0; });
    return text;
  };
  const Page page(contentOf(kRoot / "docs/embedding.md"));
  const auto shown = std::ranges::find_if(page.fences, [](const std::pair<std::string, std::string> &fence) {
    return fence.first == "cpp" && fence.second.find("NSA_OP_NSA_BWD") != std::string::npos;
  });
  ASSERT_NE(shown, page.fences.end());
  const std::string program = withoutSpaces(contentOf(kRoot / "docs/examples/hello/gradient.cpp"));
  EXPECT_NE(program.find(withoutSpaces(shown->second)), std::string::npos);
}

// A configuration of attention that is scheduled by hand names its `warpgroups`. The pages say that the record of the
// forward pass has none; a new record ends that.
TEST(Readme, SaysOfWhichKernelsTheForwardPassIs) {
  const std::string configs = contentOf(kRoot / "bench/results/h200/prefill.json");
  const std::string byHand = contentOf(kRoot / "bench/results/h200/attention_nsa128.json");
  ASSERT_NE(configs.find("key_tile="), std::string::npos);
  ASSERT_NE(byHand.find("warpgroups="), std::string::npos) << "what tells the two apart has another name now";
  const bool isGeneratedAlone = configs.find("warpgroups=") == std::string::npos;
  for (const char *page : {"README.md", "docs/results.md"})
    EXPECT_EQ(contentOf(kRoot / page).find("forward pass is of generated kernels alone.") != std::string::npos,
              isGeneratedAlone)
        << page;
}

// CI runs tools/test because README says so, and both are run from the root.
TEST(Readme, HasTheTwoCommands) {
  const std::string text = contentOf(kRoot / "README.md");
  for (const char *command :
       {"\ntools/quickstart   # installs what is missing, builds, runs the whole forward pass twice over a trained "
        "model's tensors, then decodes\n",
        "\ntools/test         # installs what is missing, builds, runs the tests, under sanitizers too\n"})
    EXPECT_NE(text.find(command), std::string::npos) << command;
  EXPECT_NE(contentOf(kRoot / ".ci/run").find("/../tools/test\""), std::string::npos);
}

// The names of the folders that .gitignore leaves out: build trees and what commands of the documentation write.
bool isIgnored(const std::string &name) {
  static const std::regex pattern("/?([^/*]+)(\\*?)/");
  std::istringstream lines(contentOf(kRoot / ".gitignore"));
  std::smatch match;
  for (std::string line; std::getline(lines, line);)
    if (std::regex_match(line, match, pattern))
      if (match.length(2) ? name.starts_with(match.str(1)) : name == match.str(1))
        return true;
  return false;
}

// The top level of the repository. A new part belongs into one of these folders.
const std::vector<std::string> kFolders = {"autotune", "bench",     "cache", "compiler", "docs",
                                           "runtime",  "templates", "tests", "tools"};

TEST(Readme, MapsEveryFolder) {
  std::vector<std::string> mapped, present;
  static const std::regex row("\\n\\| `([a-z]+)/` \\|");
  const std::string text = contentOf(kRoot / "README.md");
  for (std::sregex_iterator match(text.begin(), text.end(), row), end; match != end; ++match)
    mapped.push_back(match->str(1));
  for (const auto &entry : files::directory_iterator(kRoot))
    if (const std::string name = entry.path().filename().string();
        entry.is_directory() && !name.starts_with(".") && !isIgnored(name))
      present.push_back(name);
  std::ranges::sort(mapped);
  std::ranges::sort(present);
  EXPECT_EQ(present, kFolders);
  EXPECT_EQ(mapped, kFolders);
}

TEST(Readme, LeadsToEveryPage) {
  const std::string text = contentOf(kRoot / "README.md");
  for (const auto &entry : files::directory_iterator(kRoot / "docs")) {
    const std::string name = entry.path().filename().string();
    if (name != "figures") // a reader meets them in their pages
      EXPECT_NE(text.find("](docs/" + name), std::string::npos) << name;
  }
}

// A host that looks for a variable finds it in one place.
TEST(Embedding, NamesEachVariableOfAnEngine) {
  const std::string header = contentOf(kRoot / "runtime/include/nsa/nsa.h"),
                    page = contentOf(kRoot / "docs/embedding.md");
  const size_t begin = header.find("typedef struct nsa_engine_options {"), end = header.find("} nsa_engine_options;");
  ASSERT_LT(begin, end);
  const std::string options = header.substr(begin, end - begin);
  const size_t section = page.find("## Options and environment");
  ASSERT_NE(section, std::string::npos);
  const std::string named = page.substr(section, page.find("\n## ", section) - section);
  static const std::regex variable("NSA_[A-Z_]*[A-Z]");
  size_t variables = 0;
  for (std::sregex_iterator found(options.begin(), options.end(), variable), past; found != past; ++found, ++variables)
    EXPECT_NE(named.find("`" + found->str() + "`"), std::string::npos) << found->str();
  EXPECT_GT(variables, 20U);
}

TEST(Results, ListsItsSections) {
  const std::string text = contentOf(kRoot / "docs/results.md");
  std::vector<std::string> listed, sections;
  static const std::regex entry("^- \\[([^\\]]+)\\]\\(#");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (line.starts_with("## "))
      sections.push_back(line.substr(3));
    else if (sections.empty() && std::regex_search(line, match, entry))
      listed.push_back(match.str(1));
  }
  EXPECT_FALSE(sections.empty());
  EXPECT_EQ(listed, sections);
}

// A typed number is out of date with the next record, and the page would not say so.
TEST(Results, HasOnlyRenderedTables) {
  std::istringstream lines(contentOf(kRoot / "docs/results.md"));
  bool isRendered = false;
  size_t tables = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("<!-- table:")) {
      isRendered = true;
      ++tables;
    }
    if (line.starts_with("<!-- end -->"))
      isRendered = false;
    EXPECT_TRUE(isRendered || !line.starts_with("|")) << line;
  }
  EXPECT_GE(tables, 11U);
}

} // namespace
} // namespace nsa
