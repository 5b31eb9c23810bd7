// The rules of CONTRIBUTING.md that a text can be held to: the length of files, the size of folders, what a header
// opens with, where `asm` stands, how unfinished work is marked, and how many files name an operator.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {
namespace {

namespace files = std::filesystem;

constexpr std::string_view kTreesOfCode[] = {"autotune",  "bench",   "cache", "compiler", "docs/examples",
                                             "templates", "runtime", "tests", "tools"};
constexpr std::string_view kData[] = {
    "bench/results", "cache/packs",      "tests/compat/8a804fc/nsa", "tests/compat/c2d5708/nsa",
    "tests/data",    "tests/fuzz/corpus"};

struct File {
  std::string name; // from the root
  std::string text;
};

const std::vector<File> &code() {
  static const std::vector<File> all = [] {
    static const std::set<std::string> kEndings = {".h",   ".hpp", ".c",    ".cpp",  ".def", ".cu",    ".cuh",
                                                   ".inc", ".td",  ".mlir", ".tile", ".py",  ".cmake", ".sh"};
    const files::path root = NSA_SOURCE_DIR;
    std::vector<File> found;
    for (const std::string_view tree : kTreesOfCode)
      for (const auto &entry : files::recursive_directory_iterator(root / tree)) {
        const std::string name = files::relative(entry.path(), root).generic_string();
        const bool isData = std::ranges::any_of(kData, [&](std::string_view data) { return name.starts_with(data); });
        if (!entry.is_regular_file() || isData || !kEndings.contains(entry.path().extension().string()))
          continue;
        std::ifstream stream(entry.path(), std::ios::binary);
        found.push_back({name, {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()}});
      }
    return found;
  }();
  return all;
}

bool opensWithComment(const std::string &header) { return header.starts_with("//") || header.starts_with("/*"); }

// An `asm` statement, and not the word in a comment.
bool hasAsm(const std::string &text) {
  static const std::regex comments("//[^\n]*"), statement("\\basm\\b\\s*(volatile)?\\s*\\(");
  return std::regex_search(std::regex_replace(text, comments, ""), statement);
}

bool mayHaveAsm(const std::string &name) {
  static const std::regex instructions("templates/device/([a-z0-9]+/)?ptx_[a-z]+\\.cuh");
  return std::regex_match(name, instructions);
}

// Returns the marks of unfinished work that name no issue.
std::vector<std::string> marksWithoutIssue(std::string_view text) {
  std::vector<std::string> found;
  for (const std::string_view mark : {"TODO", "FIXME"})
    for (size_t at = text.find(mark); at != std::string_view::npos; at = text.find(mark, at + 1))
      if (mark != "TODO" || !text.substr(at + mark.size()).starts_with("(#"))
        found.emplace_back(mark);
  return found;
}

// The files of a template, as the table of mutants names them: its own file, and the files of the device library that
// it includes.
std::vector<std::string> filesOf(const File &file) {
  std::vector<std::string> names = {file.name.substr(std::string_view("templates/").size())};
  static const std::regex include("#include \"([^\"]+)\"");
  for (std::sregex_iterator match(file.text.begin(), file.text.end(), include), end; match != end; ++match)
    names.push_back("device/" + match->str(1));
  return names;
}

// An operator is a row of a table (runtime/model/operators.h). Code that asks for an operator by its enumerator has to
// change with every new operator, so few files may do it.
bool namesOperator(const File &file) {
  static const std::regex enumerator("\\bOperator::k[A-Z]|using enum Operator;");
  return std::regex_search(file.text, enumerator);
}

// The table of operators and the graphs are data of operators.
bool mayNameOperators(const std::string &name) {
  return name.starts_with("tests/") || name.starts_with("docs/") || name.starts_with("runtime/model/operators.") ||
         name == "runtime/engine/graph/graph.cpp" || name == "runtime/engine/graph/gradient_graphs.h" ||
         name == "runtime/engine/graph/compress_gradient_graph.h" || name == "runtime/engine/graph/decode_graphs.h" ||
         name == "runtime/engine/graph/nsa_gradient_graph.h" || name == "runtime/engine/graph/shared_nodes.h";
}

TEST(Rules, ABreachIsFound) {
  EXPECT_TRUE(namesOperator({"", "op == Operator::kCmp"}));
  EXPECT_FALSE(namesOperator({"", "OperatorDef::kInternal"}));
  EXPECT_FALSE(mayNameOperators("runtime/model/tensors.h"));
  EXPECT_FALSE(opensWithComment("#pragma once\n// What it is for.\n"));
  EXPECT_TRUE(opensWithComment("// What it is for.\n#pragma once\n"));
  EXPECT_TRUE(hasAsm("void f() { asm volatile(\"nop;\"); }"));
  EXPECT_FALSE(hasAsm("// no asm (none)\nvoid f();"));
  EXPECT_TRUE(mayHaveAsm("templates/device/sm90/ptx_tma.cuh"));
  EXPECT_FALSE(mayHaveAsm("templates/device/copy.cuh"));
  EXPECT_EQ(marksWithoutIssue(std::string("// TO") + "DO: later, and TO" + "DO(#7)"),
            std::vector<std::string>{std::string("TO") + "DO"});
}

TEST(Rules, FilesStayBelowFiveHundredLines) {
  for (const File &file : code())
    EXPECT_LT(std::ranges::count(file.text, '\n'), 500) << file.name;
  EXPECT_GT(code().size(), 500U);
}

TEST(Rules, FoldersHoldAtMostFortyFiles) {
  std::map<std::string, int> counts;
  for (const std::string_view tree : kTreesOfCode)
    if (tree != "tests")
      for (const auto &entry : files::recursive_directory_iterator(files::path(NSA_SOURCE_DIR) / tree))
        if (entry.is_regular_file())
          ++counts[entry.path().parent_path().generic_string()];
  for (const auto &[folder, count] : counts)
    EXPECT_LE(count, 40) << folder;
  EXPECT_GT(counts.size(), 40U);
}

// A target is a row of one table (runtime/model/targets.h), and the name of a grid's size of another one
// (runtime/base/kernel_arguments.cpp). Any of their names is an example.
TEST(Rules, TargetsAndLaunchNamesHaveOnePlace) {
  std::vector<std::string> targets, sizes;
  for (const File &file : code()) {
    if (file.name.starts_with("tests/") || file.name.starts_with("templates/") || file.name.starts_with("bench/"))
      continue;
    if (file.text.find("\"sm_86\"") != std::string::npos && !file.name.ends_with("nsa_compiler.h"))
      targets.push_back(file.name);
    if (file.text.find("\"max_blocks_c\"") != std::string::npos)
      sizes.push_back(file.name);
  }
  EXPECT_EQ(targets, std::vector<std::string>{"runtime/model/targets.h"});
  EXPECT_EQ(sizes, std::vector<std::string>{"runtime/base/kernel_arguments.cpp"});
}

// A field of a spec is data: beside the lists, its rules and the reference, no file knows it. `init_blocks` is the
// example.
TEST(Rules, FewFilesNameAFieldOfASpec) {
  std::vector<std::string> naming;
  for (const File &file : code())
    if (!file.name.starts_with("tests/") && !file.name.starts_with("templates/") && !file.name.starts_with("docs/") &&
        (file.text.find("init_blocks") != std::string::npos || file.text.find("initBlocks") != std::string::npos))
      naming.push_back(file.name);
  EXPECT_GE(naming.size(), 2U);
  EXPECT_LE(naming.size(), 6U) << ::testing::PrintToString(naming);
}

TEST(Rules, AtMostThirteenFilesNameOperators) {
  std::vector<std::string> found;
  for (const File &file : code())
    if (!mayNameOperators(file.name) && namesOperator(file))
      found.push_back(file.name);
  EXPECT_LE(found.size(), 13U) << testing::PrintToString(found);
  EXPECT_FALSE(found.empty());
}

TEST(Rules, AHeaderOpensWithWhatItIsFor) {
  for (const File &file : code())
    if (file.name.ends_with(".h") || file.name.ends_with(".cuh"))
      EXPECT_TRUE(opensWithComment(file.text)) << file.name;
}

TEST(Rules, OnlyTheFilesOfInstructionsContainAsm) {
  for (const File &file : code())
    if (file.name.starts_with("templates/") && !mayHaveAsm(file.name))
      EXPECT_FALSE(hasAsm(file.text)) << file.name;
}

TEST(Rules, UnfinishedWorkNamesItsIssue) {
  for (const File &file : code())
    if (!file.name.ends_with("rules_test.cpp"))
      EXPECT_EQ(marksWithoutIssue(file.text), std::vector<std::string>()) << file.name;
}

// A pass of Passes.td is run by a lit test under its flag.
TEST(Rules, EveryPassHasALitTest) {
  static const std::regex definition("def [A-Za-z]+ : Pass<\"([a-z-]+)\"");
  size_t passes = 0;
  for (const File &file : code()) {
    if (!file.name.ends_with("/Passes.td"))
      continue;
    for (std::sregex_iterator match(file.text.begin(), file.text.end(), definition), end; match != end; ++match) {
      ++passes;
      EXPECT_TRUE(std::ranges::any_of(code(), [&](const File &test) {
        return test.name.starts_with("tests/lit/") && test.text.find(match->str(1)) != std::string::npos;
      })) << match->str(1);
    }
  }
  EXPECT_GE(passes, 8U);
}

// A template without mutants is one whose tests may notice nothing.
TEST(Rules, EveryTemplateHasMutants) {
  size_t templates = 0;
  for (const File &file : code()) {
    const bool isTile = file.name.starts_with("templates/tile/") && !file.name.starts_with("templates/tile/library/");
    if (!isTile && !file.name.starts_with("templates/cuda/"))
      continue;
    ++templates;
    // A hand-scheduled template consists of headers.
    const std::vector<std::string> names = filesOf(file);
    EXPECT_TRUE(std::ranges::any_of(code(), [&](const File &table) {
      return table.name.starts_with("tests/mutation/") && std::ranges::any_of(names, [&](const std::string &name) {
               return table.text.find("\"" + name + "\"") != std::string::npos;
             });
    })) << file.name;
  }
  EXPECT_GE(templates, 17U);
}

} // namespace
} // namespace nsa
