#include "compiler/language/syntax/Parser.h"

#include "compiler/language/syntax/ParserRules.h"

#include <algorithm>

namespace nsa::language {

std::unique_ptr<SyntaxTree> parse(const SourceFile &file, Diagnostics &diagnostics) {
  auto tree = std::make_unique<SyntaxTree>();
  tree->source = &file;
  if (checkText(file, diagnostics))
    Parser(file, diagnostics, *tree).parseFile();
  return tree;
}

Parser::Parser(const SourceFile &file, Diagnostics &diagnostics, SyntaxTree &tree)
    : tree(tree), diagnostics(diagnostics), lexer(file, diagnostics) {
  current = lexer.next();
  following = lexer.next();
}

void Parser::parseFile() {
  std::vector<const Item *> items;
  for (skipNewlines(); current.kind != TokenKind::kEnd; skipNewlines()) {
    if (current.kind == TokenKind::kCloseBrace) {
      fail(here(), "'}' closes nothing");
      while (current.kind == TokenKind::kCloseBrace)
        advance();
      recover();
      continue;
    }
    const Item *read = item();
    endStatement();
    if (hasFailed) {
      hasRefusedHead = true; // this may have been it
      recover();
      continue;
    }
    checkPlacement(*read);
    if (items.empty()) {
      tree.kernel = asIf<KernelItem>(read);
      tree.library = asIf<LibraryItem>(read);
    }
    items.push_back(read);
  }
  if (items.empty() && !diagnostics.hasErrors())
    fail(here(), "the file has no program").hint("it begins with 'kernel NAME', or with 'library NAME'");
  tree.items = tree.arena.copy(items);
}

TokenKind Parser::kind() const {
  if (hasFailed)
    return TokenKind::kError;
  const bool endsLine = current.startsLine && ((brackets == 0 && !continuesLine(previous.kind)) || beginsStatement());
  return endsLine && current.kind != TokenKind::kEnd ? TokenKind::kNewline : current.kind;
}

bool Parser::atWord(std::string_view word) const { return at(TokenKind::kName) && textOf(current) == word; }

void Parser::advance() {
  previous = current;
  current = following;
  following = lexer.next();
}

bool Parser::take(TokenKind expected) {
  if (!at(expected))
    return false;
  if (expected == TokenKind::kOpenParenthesis || expected == TokenKind::kOpenBracket)
    ++brackets;
  if ((expected == TokenKind::kCloseParenthesis || expected == TokenKind::kCloseBracket) && brackets > 0)
    --brackets;
  advance();
  return true;
}

bool Parser::takeWord(std::string_view word) { return atWord(word) && take(TokenKind::kName); }

void Parser::need(TokenKind expected) {
  if (!take(expected))
    failExpected("'" + std::string(spellingOf(expected)) + "'");
}

void Parser::needClosing(TokenKind expected, const Token &open) {
  if (!take(expected))
    failExpected("'" + std::string(spellingOf(expected)) + "'")
        .note(rangeOf(open), "'" + std::string(textOf(open)) + "' is open");
}

// What is missing at the end of a line is missing there, and not in front of the next statement.
SourceRange Parser::here() const {
  if (at(TokenKind::kNewline) || (current.kind == TokenKind::kEnd && previous.end > 0))
    return {tree.source, previous.end, previous.end};
  return rangeOf(current);
}

std::string Parser::describeNext() const {
  if (at(TokenKind::kNewline))
    return "the end of the line";
  if (current.kind == TokenKind::kEnd)
    return "the end of the file";
  return "'" + std::string(textOf(current).substr(0, 40)) + "'";
}

Diagnostic &Parser::fail(const SourceRange &range, std::string text) {
  const bool isReported = hasFailed || hasStopped || current.kind == TokenKind::kError;
  hasFailed = true;
  if (isReported)
    return unreported = Diagnostic();
  Diagnostic &message = diagnostics.error(range, std::move(text));
  if (diagnostics.isFull())
    stop();
  return message;
}

Diagnostic &Parser::failExpected(std::string_view what) {
  return fail(here(), "expected " + std::string(what) + ", found " + describeNext());
}

void Parser::stop() {
  hasFailed = hasStopped = true;
  lexer.stop();
  current = following = lexer.next();
}

void Parser::enter() {
  if (++nesting <= kMostNesting || hasStopped)
    return;
  fail(here(), "nested more than " + std::to_string(kMostNesting) + " deep");
  stop();
}

void Parser::checkHeight(const SourceRange &range, uint32_t height) {
  if (height <= kMostNesting || hasStopped)
    return;
  fail(range, "an expression of more than " + std::to_string(kMostNesting) + " operations in a row")
      .hint("name parts of it with let");
  stop();
}

uint32_t Parser::above(std::initializer_list<const Expr *> children) {
  uint32_t height = 0;
  for (const Expr *child : children)
    height = std::max<uint32_t>(height, child ? child->height : 0);
  return height + 1;
}

uint32_t Parser::above(ExprList children) {
  uint32_t height = 0;
  for (const Expr *child : children)
    height = std::max<uint32_t>(height, child ? child->height : 0);
  return height + 1;
}

void Parser::endStatement() {
  if (at(TokenKind::kNewline) || at(TokenKind::kEnd) || at(TokenKind::kCloseBrace))
    return;
  const bool isAnd = atWord("and"), isOr = atWord("or");
  Diagnostic &message = failExpected("the end of the line");
  if (isAnd || isOr)
    message.hint(isAnd ? "a && b" : "a || b");
}

void Parser::skipNewlines() { current.startsLine = false; }

// Whether the next token, the first one of its line, begins a statement wherever it stands: so much can be told where a
// bracket or the end of an expression is missing before it.
bool Parser::beginsStatement() const {
  switch (current.kind) {
  case TokenKind::kLet:
  case TokenKind::kVar:
  case TokenKind::kFor:
  case TokenKind::kStatic:
  case TokenKind::kStore:
  case TokenKind::kReport:
  case TokenKind::kReturn:
    return true;
  case TokenKind::kName:
    // No expression has two operands in a row.
    return itemKindOf(textOf(current)) != ItemKind::kStatement &&
           (following.kind == TokenKind::kNumber || (following.kind == TokenKind::kName && !isInnerWord(following)));
  default:
    return false;
  }
}

// Words that follow an expression or a name without being one.
bool Parser::isInnerWord(const Token &token) const {
  constexpr std::string_view kInnerWords[] = {"at",    "by",     "inout", "optional", "outer",
                                              "paged", "serves", "step",  "unique",   "when"};
  return std::ranges::find(kInnerWords, textOf(token)) != std::end(kInnerWords);
}

// Leaves the line of a mistake, and the lines of brackets that are open in it. A block that the line opens is read, for
// the mistakes inside of it and for its end.
void Parser::recover() {
  if (diagnostics.isFull())
    stop();
  uint32_t open = brackets;
  brackets = 0;
  hasFailed = hasStopped;
  std::vector<Token> braces;
  while (current.kind != TokenKind::kEnd) {
    // A line that begins with an operator goes on with the line before.
    if (current.startsLine && (open == 0 || beginsStatement()) && !continuesLine(current.kind)) {
      open = 0;
      if (braces.empty())
        return;
      (void)statements(braces.back(), braces.back());
      braces.pop_back();
      if (!hasStopped)
        hasFailed = false;
      continue;
    }
    switch (current.kind) {
    case TokenKind::kOpenParenthesis:
    case TokenKind::kOpenBracket:
      ++open;
      break;
    case TokenKind::kCloseParenthesis:
    case TokenKind::kCloseBracket:
      open -= open > 0;
      break;
    case TokenKind::kOpenBrace:
      braces.push_back(current);
      if (braces.size() > kMostNesting)
        stop();
      break;
    case TokenKind::kCloseBrace:
      if (!braces.empty())
        braces.pop_back();
      else if (blocks > 0)
        return;
      break;
    default:
      break;
    }
    advance();
  }
}

} // namespace nsa::language
