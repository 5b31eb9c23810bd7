// Words that leave open who or what is meant: a sentence with one of them has to be read twice. Texts of the
// repository, code and its comments included, do not use them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {
namespace {

namespace files = std::filesystem;

constexpr std::string_view kVagueWords[] = {"nobody", "whoever"};

// The folders with texts.
constexpr std::string_view kTreesOfText[] = {".ci",  "autotune", "bench",     "cache", "compiler",
                                             "docs", "runtime",  "templates", "tests", "tools"};
constexpr std::string_view kPages[] = {"CHANGELOG.md", "CMakeLists.txt", "CONTRIBUTING.md", "README.md"};
// Data, in which there are no sentences, and headers that are kept as they were.
constexpr std::string_view kTreesOfData[] = {"bench/results",        "cache/packs", "tests/compat/8a804fc",
                                             "tests/compat/c2d5708", "tests/data",  "tests/fuzz/corpus"};

bool isLetter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

// The lines with a vague word, as "7: nobody". A part of a longer word does not count.
std::vector<std::string> vagueLines(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::vector<std::string> found;
  for (const std::string_view word : kVagueWords)
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
      const size_t end = at + word.size();
      if ((at == 0 || !isLetter(text[at - 1])) && (end == text.size() || !isLetter(text[end])))
        found.push_back(std::to_string(1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n')) +
                        ": " + std::string(word));
    }
  return found;
}

TEST(Words, AVagueWordIsFound) {
  EXPECT_EQ(vagueLines("first\n// Nobody reads it,\nso whoever"),
            (std::vector<std::string>{"2: nobody", "3: whoever"}));
  EXPECT_EQ(vagueLines("it is nobody's"), std::vector<std::string>{"1: nobody"});
  EXPECT_TRUE(vagueLines("BusyBody nobodys").empty());
}

TEST(Words, EverySentenceSaysWhoOrWhatIsMeant) {
  const files::path root = NSA_SOURCE_DIR;
  std::vector<std::string> names(std::begin(kPages), std::end(kPages));
  for (const std::string_view tree : kTreesOfText)
    for (const auto &entry : files::recursive_directory_iterator(root / tree))
      if (entry.is_regular_file() && entry.path().filename() != "words_test.cpp")
        names.push_back(files::relative(entry.path(), root).generic_string());
  std::erase_if(names, [](const std::string &name) {
    return std::ranges::any_of(kTreesOfData, [&](std::string_view tree) { return name.starts_with(tree); });
  });
  EXPECT_GT(names.size(), 600U) << "the repository is not at " << root;
  for (const std::string &name : names) {
    std::ifstream stream(root / name, std::ios::binary);
    for (const std::string &line : vagueLines({std::istreambuf_iterator<char>(stream), {}}))
      ADD_FAILURE() << name << ":" << line << ": name the person, the process or the thing";
  }
}

} // namespace
} // namespace nsa
