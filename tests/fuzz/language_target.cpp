// A program of the tile language: what is read says the same in its layout, and all messages are about places in it.
#include "tests/fuzz/fuzz_target.h"

#include "compiler/language/Format.h"
#include "compiler/language/Lexer.h"
#include "compiler/language/Parser.h"
#include "tests/unit/language/syntax_text.h"

#include <string>

namespace nsa::fuzz {
namespace {

using language::Diagnostic;
using language::Diagnostics;
using language::Lexer;
using language::Severity;
using language::SourceFile;
using language::SyntaxTree;
using language::Token;
using language::TokenKind;

bool isUtf8(std::string_view text) {
  while (!text.empty()) {
    const uint32_t length = language::firstCharacter(text).length;
    if (length == 0)
      return false;
    text.remove_prefix(length);
  }
  return true;
}

void checkMessages(const SourceFile &file, const Diagnostics &diagnostics) {
  expect(diagnostics.list().size() <= Diagnostics::kMostErrors, "errors have a limit");
  for (const Diagnostic &message : diagnostics.list()) {
    expect(message.severity == Severity::kError && !message.text.empty(), "what is refused has a reason");
    expect(message.range.file == &file && message.range.begin <= message.range.end &&
               message.range.end <= file.text().size(),
           "a message is about a place in the file");
    expect(isUtf8(message.toString()), "a message can be printed");
  }
}

std::vector<std::string> commentsOf(const SourceFile &file) {
  Diagnostics diagnostics;
  Lexer lexer(file, diagnostics, Lexer::Comments::kKeep);
  std::vector<std::string> found;
  for (Token token = lexer.next(); token.kind != TokenKind::kEnd; token = lexer.next())
    if (token.kind == TokenKind::kComment) {
      found.emplace_back(file.text().substr(token.begin, token.end - token.begin));
      found.back().erase(found.back().find_last_not_of(" \t\r") + 1);
    }
  return found;
}

void checkLayout(const SourceFile &file, const SyntaxTree &tree) {
  Diagnostics diagnostics;
  const std::optional<std::string> layout = language::format(file, diagnostics);
  expect(layout && diagnostics.list().empty(), "what is read has a layout");
  const SourceFile laidOut("layout.tile", *layout);
  const auto again = language::parse(laidOut, diagnostics);
  expect(!diagnostics.hasErrors(), "a layout is read");
  expect(syntaxText(*again) == syntaxText(tree), "a layout says the same");
  expect(commentsOf(laidOut) == commentsOf(file), "a layout has all comments in their order");
  expect(language::format(laidOut, diagnostics) == layout, "a layout is its own layout");
}

void runLanguage(std::string_view input) {
  const SourceFile file("fuzz.tile", std::string(input));
  Diagnostics diagnostics;
  const auto tree = language::parse(file, diagnostics);
  checkMessages(file, diagnostics);
  (void)syntaxText(*tree); // what was read beside a mistake is whole
  if (diagnostics.hasErrors())
    return;
  expect(tree->kernel || tree->library, "a program says what it is");
  checkLayout(file, *tree);
}

const Registration kLanguage({"language", runLanguage});

} // namespace
} // namespace nsa::fuzz
