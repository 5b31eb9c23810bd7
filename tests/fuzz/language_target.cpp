// A program of the tile language: what is read says the same in its layout, all messages are about places in it, and
// typing it ends.
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/language_program.h"

#include "compiler/language/syntax/Format.h"
#include "compiler/language/syntax/Lexer.h"
#include "compiler/language/types/Explain.h"
#include "compiler/language/types/Types.h"
#include "tests/unit/language/syntax_text.h"

#include <string>

namespace nsa::fuzz {
namespace {

using language::Diagnostics;
using language::Lexer;
using language::SourceFile;
using language::SyntaxTree;
using language::Token;
using language::TokenKind;

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

// What is typed can be explained, and what is not has a reason.
void checkTypes(LanguageProgram &program) {
  for (const bool isGpu : {true, false}) {
    Diagnostics diagnostics;
    const language::GivenValues values = program.values(isGpu);
    const auto typed = language::typeProgram(*program.tree, program.libraries(), values, diagnostics);
    program.checkMessages(diagnostics);
    expect((typed != nullptr) != diagnostics.hasErrors(), "a program is typed or refused");
    if (typed)
      (void)language::explain(*typed);
  }
}

void runLanguage(std::string_view input) {
  LanguageProgram program(input);
  program.checkMessages(program.diagnostics);
  (void)syntaxText(*program.tree); // what was read beside a mistake is whole
  if (program.diagnostics.hasErrors())
    return;
  expect(program.tree->kernel || program.tree->library, "a program says what it is");
  checkLayout(program.file(), *program.tree);
  if (program.tree->kernel)
    checkTypes(program);
}

const Registration kLanguage({"language", runLanguage});

} // namespace
} // namespace nsa::fuzz
