// The grammar for editors (tools/editor) knows all words of the language, and takes no name for a word.
#include "compiler/language/syntax/ParserRules.h"
#include "compiler/language/syntax/Token.h"
#include "compiler/language/types/Declarations.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>

namespace nsa::language {
namespace {

nlohmann::json read(const std::string &name) {
  std::ifstream file(NSA_SOURCE_DIR "/tools/editor/" + name);
  return nlohmann::json::parse(file, nullptr, false);
}

class EditorGrammar : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_TRUE(grammar.is_object()) << "the grammar is no JSON";
    ASSERT_TRUE(grammar.contains("repository"));
  }

  // Whether the pattern `part` takes just `word` of a line. Its expressions mean the same to the editors' engine.
  bool takes(const std::string &part, const std::string &line, const std::string &word) const {
    const std::regex pattern(grammar["repository"][part]["match"].get<std::string>());
    std::smatch match;
    return std::regex_search(line, match, pattern) && match[match.size() > 1 ? 1 : 0] == word;
  }
  // The words between the parentheses of the pattern `part`.
  std::set<std::string> wordsOf(const std::string &part) const {
    const std::string pattern = grammar["repository"][part]["match"];
    const size_t open = pattern.find('(') + 1;
    std::set<std::string> words;
    std::istringstream list(pattern.substr(open, pattern.find(')') - open));
    for (std::string word; std::getline(list, word, '|');)
      words.insert(word);
    return words;
  }

  nlohmann::json grammar = read("nsa-tile.tmLanguage.json");
};

TEST_F(EditorGrammar, EveryIncludedPatternIsThere) {
  std::set<std::string> included;
  for (const nlohmann::json &pattern : grammar["patterns"]) {
    const std::string name = pattern.at("include").get<std::string>().substr(1);
    EXPECT_TRUE(grammar["repository"].contains(name)) << name;
    included.insert(name);
  }
  EXPECT_EQ(included.size(), grammar["repository"].size());
  EXPECT_EQ(grammar["fileTypes"], nlohmann::json({"tile"}));
}

TEST_F(EditorGrammar, KnowsTheReservedWords) {
  int words = 0;
  for (int kind = static_cast<int>(TokenKind::kLet); isReserved(static_cast<TokenKind>(kind)); ++kind, ++words) {
    const std::string word(spellingOf(static_cast<TokenKind>(kind)));
    const bool isValue = TokenKind(kind) >= TokenKind::kTrue;
    EXPECT_TRUE(takes(isValue ? "constant" : "keyword", "x " + word + " y", word)) << word;
    EXPECT_FALSE(takes("keyword", word + "ter", word)) << "a name may begin with a word";
  }
  EXPECT_EQ(words, 18);
  EXPECT_EQ(wordsOf("keyword").size() + 4, 18u) << "the grammar has a word that the language lacks";
}

TEST_F(EditorGrammar, KnowsTheDeclarations) {
  std::set<std::string> words = wordsOf("declaration");
  words.merge(wordsOf("heading"));
  words.merge(wordsOf("function"));
  std::set<ItemKind> kinds;
  for (const std::string &word : words) {
    kinds.insert(itemKindOf(word));
    EXPECT_NE(itemKindOf(word), ItemKind::kStatement) << word << " declares nothing";
    EXPECT_TRUE(takes("declaration", word + " x", word) || takes("heading", word + " x", word) ||
                takes("function", word + " x", word))
        << word;
  }
  // kStatement is the last kind.
  EXPECT_EQ(kinds.size(), static_cast<size_t>(ItemKind::kStatement)) << "the grammar lacks a declaration";
  EXPECT_FALSE(takes("declaration", "code = 3", "code")) << "a variable may be called as a declaration is";
}

TEST_F(EditorGrammar, KnowsWhatIsBuiltIn) {
  for (const std::string_view name : builtInFunctions())
    EXPECT_TRUE(takes("builtin", std::string(name) + "(x)", std::string(name))) << name;
  EXPECT_EQ(wordsOf("builtin").size(), builtInFunctions().size() + 1) << "and roundup, of constants";
  for (const std::string_view name : builtInNumbers())
    EXPECT_TRUE(takes("constant", "x * " + std::string(name), std::string(name))) << name;
  for (const std::string &name : wordsOf("type"))
    EXPECT_TRUE(isBuiltInWord(name) || name == "bf16" || name == "fp16" || name == "fp32") << name;
  for (const char *name : {"bool", "i32", "i64", "f32", "f64", "io"}) {
    EXPECT_TRUE(isBuiltInWord(name)) << name;
    EXPECT_TRUE(wordsOf("type").contains(name)) << name;
  }
}

TEST_F(EditorGrammar, KnowsCommentsNumbersAndWordsAtTheirPlaces) {
  EXPECT_TRUE(takes("comment", "let x = 1 // let y", "// let y"));
  EXPECT_TRUE(takes("number", "x * 1.5e-3", "1.5e-3"));
  EXPECT_FALSE(takes("number", "x1", "1"));
  EXPECT_TRUE(takes("schedule", "for i in 0 .. n by c @stages(2) {", "@stages"));
  for (const char *line : {"kernel a serves b", "fixed a when b", "axis a = 3 outer", "tensor x[i] optional, y[i]",
                           "tensor x[i] inout", "tensor x[i] paged(4)", "for i in 0 .. n by c {",
                           "for i in a .. b step 2 {", "report code at i if c", "store unique t[i] = x"})
    EXPECT_TRUE(std::regex_search(line, std::regex(grammar["repository"]["inner"]["match"].get<std::string>())))
        << line;
  EXPECT_FALSE(takes("inner", "let step = 3", "step")) << "a variable may be called so";
}

TEST_F(EditorGrammar, TheExtensionNamesFilesThatExist) {
  const nlohmann::json package = read("package.json");
  ASSERT_TRUE(package.is_object()) << "no JSON";
  const nlohmann::json &contributes = package.at("contributes");
  EXPECT_EQ(contributes.at("grammars")[0].at("scopeName"), grammar.at("scopeName"));
  EXPECT_EQ(contributes.at("grammars")[0].at("path"), "./nsa-tile.tmLanguage.json");
  EXPECT_EQ(contributes.at("languages")[0].at("configuration"), "./language-configuration.json");
  EXPECT_EQ(read("language-configuration.json").at("comments").at("lineComment"), "//");
}

} // namespace
} // namespace nsa::language
