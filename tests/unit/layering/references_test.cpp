// Every file that a page, a comment or a message names is in the repository, and so is every section that a link or a
// comment cites. A reader follows such a name; one that leads nowhere is worse than none.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {
namespace {

namespace files = std::filesystem;

// The folders of the repository, without those that hold data alone.
constexpr std::string_view kTrees[] = {".ci",  "autotune", "bench",     "cache", "compiler",
                                       "docs", "runtime",  "templates", "tests", "tools"};
// What names no file of the repository: data, and the README of the bundle, which names files of the bundle.
constexpr std::string_view kDataTrees[] = {
    "bench/results",     "tests/compat/8a804fc", "tests/compat/c2d5708",  "tests/data",
    "tests/fuzz/corpus", "cache/packs",          "tools/packaging/bundle"};
constexpr std::string_view kPlaces = "autotune|bench|cache|compiler|docs|runtime|templates|tests|tools";

// `](target#anchor)`
const std::regex kLinks(R"re(\]\(([^)#\s]*)(#[^)\s]*)?\))re");

enum class Text : uint8_t { kPage, kSlashes, kHashes };

std::string wholeText(const files::path &path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}

// What a line of code says to a reader: its comment, and of its literals those that name a page.
class CodeReader {
public:
  explicit CodeReader(Text kind) : kind(kind) {}

  std::string proseOf(const std::string &line) {
    std::string prose;
    char quote = 0;
    size_t literal = 0;
    for (size_t i = 0; i < line.size(); ++i) {
      if (inBlock) {
        const size_t end = std::min(line.find("*/", i), line.size());
        prose += line.substr(i, end - i) + " ";
        inBlock = end == line.size();
        i = end + 1;
      } else if (quote) {
        if (line[i] == '\\')
          ++i;
        else if (line[i] == quote) {
          const std::string text = line.substr(literal, i - literal);
          if (text.find("docs/") != std::string::npos && text.find(' ') != std::string::npos)
            prose += text + " "; // a sentence
          quote = 0;
        }
      } else if (line[i] == '"') {
        quote = line[i];
        literal = i + 1;
      } else if (kind == Text::kSlashes && line.compare(i, 2, "/*") == 0) {
        inBlock = true;
        ++i;
      } else if (kind == Text::kSlashes ? line.compare(i, 2, "//") == 0
                                        : line[i] == '#' && (i == 0 || line[i - 1] == ' ')) {
        return prose + line.substr(i);
      }
    }
    return prose;
  }

private:
  Text kind;
  bool inBlock = false;
};

// `pattern` may hold `*`, and words in capitals that stand for any name (bench/results/DEVICE).
std::regex patternOf(std::string_view path) {
  std::string text;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    const std::string_view stem = part.substr(0, part.find('.'));
    const bool isAnyName =
        stem.size() > 1 && std::ranges::all_of(stem, [](unsigned char c) { return std::isupper(c) || c == '_'; });
    text += begin ? "/" : "";
    text += isAnyName ? "[^/]+" : "";
    for (const char c : part.substr(isAnyName ? stem.size() : 0))
      text += c == '*' ? "[^/]*" : (std::isalnum(static_cast<unsigned char>(c)) ? "" : "\\") + std::string(1, c);
    begin = end + 1;
  }
  return std::regex(text);
}

// The name of a heading in a link, as the pages' hosts make it: small letters, digits, `-` for a space.
std::string anchorOf(std::string_view heading) {
  std::string anchor;
  for (const unsigned char c : heading)
    if (std::isalnum(c) || c == '-' || c == '_')
      anchor += static_cast<char>(std::tolower(c));
    else if (c == ' ')
      anchor += '-';
  return anchor;
}

bool hasHeading(const std::string &page, std::string_view anchor) {
  for (const std::string &line : linesOf(page))
    if (line.starts_with('#') && anchorOf(line.substr(line.find_first_not_of("# "))) == anchor)
      return true;
  return false;
}

// Everything that a text of `file` (relative to the root) names and that is not there.
class References {
public:
  explicit References(files::path root) : root(std::move(root)) {
    for (const std::string_view tree : kTrees)
      if (files::exists(this->root / tree))
        for (const auto &entry : files::recursive_directory_iterator(this->root / tree))
          names.push_back(files::relative(entry.path(), this->root).generic_string());
  }

  std::vector<std::string> missingIn(const std::string &file, Text kind) const {
    std::vector<std::string> missing;
    CodeReader reader(kind);
    bool inFence = false;
    for (const std::string &line : linesOf(wholeText(root / file))) {
      if (kind == Text::kPage && line.starts_with("```"))
        inFence = !inFence;
      const std::string prose = kind == Text::kPage ? line : reader.proseOf(line);
      if (kind == Text::kPage && !inFence)
        checkLinks(file, prose, missing);
      checkPaths(file, prose, missing);
      checkPages(file, kind == Text::kPage ? std::regex_replace(prose, kLinks, "]") : prose, missing);
      checkSections(file, prose, missing);
    }
    return missing;
  }

  const std::vector<std::string> &all() const { return names; }

private:
  // Of a record of any device the folder is enough: a benchmark writes the file.
  bool isThere(std::string path) const {
    if (path.starts_with("bench/results/DEVICE/"))
      path.resize(path.rfind('/'));
    if (files::exists(root / path))
      return true;
    const std::regex pattern = patternOf(path);
    return std::ranges::any_of(names, [&](const std::string &name) { return std::regex_match(name, pattern); });
  }

  void checkLinks(const std::string &file, const std::string &text, std::vector<std::string> &missing) const {
    for (std::sregex_iterator match(text.begin(), text.end(), kLinks), end; match != end; ++match) {
      const std::string target = (*match)[1], anchor = (*match)[2];
      if (target.find("://") != std::string::npos)
        continue;
      const files::path path = target.empty() ? root / file : (root / file).parent_path() / target;
      if (!files::exists(path))
        missing.push_back(file + ": " + target);
      else if (!anchor.empty() && path.extension() == ".md" && !hasHeading(wholeText(path), anchor.substr(1)))
        missing.push_back(file + ": " + target + anchor);
    }
  }

  // A path that begins with a folder of the repository.
  void checkPaths(const std::string &file, const std::string &text, std::vector<std::string> &missing) const {
    static const std::regex paths("(^|[\\s`(,;:\"'])((?:" + std::string(kPlaces) +
                                  R"re()/[A-Za-z0-9_./*-]*[A-Za-z0-9_*]))re");
    for (std::sregex_iterator match(text.begin(), text.end(), paths), end; match != end; ++match)
      if (const std::string path = (*match)[2]; !isThere(path))
        missing.push_back(file + ": " + path);
  }

  // A page by its name alone is beside the text, in docs/ or at the root.
  void checkPages(const std::string &file, const std::string &text, std::vector<std::string> &missing) const {
    static const std::regex pages(R"re((^|[\s`(,;:"'])([A-Za-z0-9_]+\.md)\b)re");
    for (std::sregex_iterator match(text.begin(), text.end(), pages), end; match != end; ++match) {
      const std::string page = (*match)[2];
      if (!files::exists((root / file).parent_path() / page) && !files::exists(root / "docs" / page) &&
          !files::exists(root / page))
        missing.push_back(file + ": " + page);
    }
  }

  // docs/specification.md N, N.M or Nb: the section N or Nb.
  void checkSections(const std::string &file, const std::string &text, std::vector<std::string> &missing) const {
    static const std::regex sections(R"re(specification\.md (\d+b?))re");
    for (std::sregex_iterator match(text.begin(), text.end(), sections), end; match != end; ++match)
      if (wholeText(root / "docs/specification.md").find("\n## " + (*match)[1].str() + ". ") == std::string::npos)
        missing.push_back(file + ": " + (*match)[0].str());
  }

  files::path root;
  std::vector<std::string> names;
};

// How a file of that name speaks to a reader; false: not at all.
bool textOf(const std::string &file, Text &kind) {
  static const std::set<std::string> kSlashEndings = {".h",  ".hpp",  ".c",   ".cpp", ".cu",  ".cuh",
                                                      ".td", ".mlir", ".inc", ".map", ".tile"};
  static const std::set<std::string> kHashEndings = {".cmake", ".txt", ".py", ".sh", ".yml", ".supp", ""};
  const std::string ending = files::path(file).extension().string();
  kind = ending == ".md" ? Text::kPage : kSlashEndings.contains(ending) ? Text::kSlashes : Text::kHashes;
  return ending == ".md" || kSlashEndings.contains(ending) || kHashEndings.contains(ending);
}

bool isData(std::string_view file) {
  return std::ranges::any_of(kDataTrees, [&](std::string_view tree) { return file.starts_with(tree); });
}

class MadeTree {
public:
  MadeTree() : root(files::path(::testing::TempDir()) / "nsa_references_test") {
    files::remove_all(root);
    write("docs/page.md", "# Page\n\n## A part of it\n");
    write("docs/specification.md", "# What\n\n## 5. Selection\n");
    write("runtime/engine/plan.h", "");
  }
  ~MadeTree() { files::remove_all(root); }

  void write(const std::string &path, const std::string &text) const {
    files::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }
  std::vector<std::string> missing(const std::string &path, const std::string &text) const {
    write(path, text);
    Text kind = Text::kPage;
    EXPECT_TRUE(textOf(path, kind));
    return References(root).missingIn(path, kind);
  }

private:
  files::path root;
};

using Missing = std::vector<std::string>;

TEST(References, ALinkThatLeadsNowhereIsFound) {
  const MadeTree tree;
  EXPECT_EQ(tree.missing("docs/a.md", "[a](page.md#a-part-of-it), [b](#here)\n## Here\n"), Missing{});
  EXPECT_EQ(tree.missing("docs/a.md", "[a](gone.md)\n"), Missing{"docs/a.md: gone.md"});
  EXPECT_EQ(tree.missing("docs/a.md", "[a](page.md#another-part)\n"), Missing{"docs/a.md: page.md#another-part"});
}

TEST(References, APathThatIsNotThereIsFound) {
  const MadeTree tree;
  EXPECT_EQ(tree.missing("docs/a.md", "`runtime/engine/plan.*`, `docs/*.md`, runtime/FOLDER/plan.h, docs/NAME.md\n"),
            Missing{});
  EXPECT_EQ(tree.missing("docs/a.md", "See `runtime/engine/gone.h`.\n"), Missing{"docs/a.md: runtime/engine/gone.h"});
  EXPECT_EQ(tree.missing("runtime/b.cpp", "int x; // as in gone.md\n"), Missing{"runtime/b.cpp: gone.md"});
  EXPECT_EQ(tree.missing("runtime/b.cpp", "/* as\n * in docs/gone.md */\n"), Missing{"runtime/b.cpp: docs/gone.md"});
  EXPECT_EQ(tree.missing("tools/run", "# see docs/gone.md\n"), Missing{"tools/run: docs/gone.md"});
}

TEST(References, AMessageThatNamesAPageThatIsNotThereIsFound) {
  const MadeTree tree;
  EXPECT_EQ(tree.missing("runtime/b.cpp", "fail(\"export it: docs/page.md\");\n"), Missing{});
  EXPECT_EQ(tree.missing("runtime/b.cpp", "fail(\"export it: docs/gone.md\");\n"),
            Missing{"runtime/b.cpp: docs/gone.md"});
  EXPECT_EQ(tree.missing("runtime/b.cpp", "open(\"/tmp/gone.md\");\n"), Missing{}) << "a path of its own is no message";
}

TEST(References, ASectionThatIsNotThereIsFound) {
  const MadeTree tree;
  EXPECT_EQ(tree.missing("runtime/b.cpp", "// (docs/specification.md 5.6)\n"), Missing{});
  EXPECT_EQ(tree.missing("runtime/b.cpp", "// (docs/specification.md 6)\n"),
            Missing{"runtime/b.cpp: specification.md 6"});
}

TEST(References, EveryFileAndSectionThatTheRepositoryNamesIsThere) {
  const files::path root = NSA_SOURCE_DIR;
  const References references(root);
  Missing named = {"README.md", "CONTRIBUTING.md", "CMakeLists.txt"};
  std::ranges::copy_if(references.all(), std::back_inserter(named),
                       [&](const std::string &file) { return files::is_regular_file(root / file) && !isData(file); });
  EXPECT_GT(named.size(), 600U) << "the repository is not at " << root;
  for (const std::string &file : named) {
    Text kind = Text::kPage;
    if (!textOf(file, kind) ||
        file == "tests/unit/layering/references_test.cpp") // which names files that are not there
      continue;
    for (const std::string &missing : references.missingIn(file, kind))
      ADD_FAILURE() << missing << ": no such file or section in the repository";
  }
}

} // namespace
} // namespace nsa
