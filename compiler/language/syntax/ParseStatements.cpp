#include "compiler/language/syntax/ParserRules.h"

#include <string>

namespace nsa::language {

// block = "{" { statement newline } "}"
Block Parser::block(const Token &owner) {
  const Token open = current;
  need(TokenKind::kOpenBrace);
  if (hasFailed)
    return {};
  const auto inside = statements(open, owner);
  return {since(open), inside};
}

std::span<const Statement *const> Parser::statements(const Token &open, const Token &owner) {
  const Nested nested(*this);
  ++blocks;
  std::vector<const Statement *> found;
  for (skipNewlines(); current.kind != TokenKind::kCloseBrace && current.kind != TokenKind::kEnd; skipNewlines()) {
    const Statement *read = statement();
    endStatement();
    if (hasFailed)
      recover();
    else
      found.push_back(read);
  }
  --blocks;
  if (!hasStopped && !take(TokenKind::kCloseBrace)) {
    Diagnostic &message =
        fail(here(), "'{' of line " + std::to_string(rangeOf(open).position().line) + " is not closed");
    message.note(rangeOf(owner), "'" + std::string(textOf(owner)) + "' begins here");
    stop();
  }
  return tree.arena.copy(found);
}

const Statement *Parser::statement() {
  switch (kind()) {
  case TokenKind::kLet:
    return letStatement();
  case TokenKind::kVar:
    return varStatement();
  case TokenKind::kIf:
    return ifStatement();
  case TokenKind::kFor:
  case TokenKind::kStatic:
    return forStatement();
  case TokenKind::kStore:
    return storeStatement();
  case TokenKind::kReport:
    return reportStatement();
  case TokenKind::kReturn:
    return returnStatement();
  case TokenKind::kName:
  case TokenKind::kOpenParenthesis:
    return assignment();
  case TokenKind::kElse:
    failExpected("a statement").hint("'else' stands in the line of the '}' before it");
    return nullptr;
  case TokenKind::kLoad:
    failExpected("a statement").hint("let x = load ..");
    return nullptr;
  default: {
    const bool isOperator = continuesLine(current.kind);
    Diagnostic &message = failExpected("a statement");
    if (isOperator)
      message.hint("a line goes on in the next one when it ends with the operator");
    return nullptr;
  }
  }
}

// target = name | "(" names ")"
Target Parser::target() {
  const Token first = current;
  const bool isTuple = take(TokenKind::kOpenParenthesis);
  const NameList found = isTuple ? names() : tree.arena.copy(std::vector<Name>{name()});
  if (isTuple)
    needClosing(TokenKind::kCloseParenthesis, first);
  return {since(first), isTuple, found};
}

// "let" target "=" expr { "," target "=" expr }
const Statement *Parser::letStatement() {
  const Token first = current;
  take(TokenKind::kLet);
  const auto bindings = list<LetStatement::Binding>([&] {
    const Target names = target();
    need(TokenKind::kAssign);
    return LetStatement::Binding{names, expr()};
  });
  return statementNode<LetStatement>(first, bindings);
}

// "var" name [ ":" type ] "=" expr { "," name [ ":" type ] "=" expr }
const Statement *Parser::varStatement() {
  const Token first = current;
  take(TokenKind::kVar);
  const auto variables = list<VarStatement::Variable>([&] {
    const Name variable = name();
    const TypeSyntax *declared = take(TokenKind::kColon) ? type() : nullptr;
    need(TokenKind::kAssign);
    return VarStatement::Variable{variable, declared, expr()};
  });
  return statementNode<VarStatement>(first, variables);
}

// "if" expr block [ "else" ( block | "if" .. ) ]
const Statement *Parser::ifStatement() {
  const Nested nested(*this);
  const Token first = current;
  take(TokenKind::kIf);
  const Expr *condition = expr();
  const Block then = block(first);
  const Block *otherwise = nullptr;
  const Token word = current;
  if (take(TokenKind::kElse)) {
    if (at(TokenKind::kIf)) {
      const Statement *next = ifStatement();
      otherwise = tree.arena.make<Block>(since(word), tree.arena.copy(std::vector<const Statement *>{next}));
    } else {
      otherwise = tree.arena.make<Block>(block(word));
    }
  }
  return statementNode<IfStatement>(first, condition, then, otherwise);
}

// "for" name "in" sum ".." sum [ "by" name | "step" sum ] { schedule } block | [ "static" ] "for" name "in" name block
const Statement *Parser::forStatement() {
  const Token first = current;
  const bool isStatic = take(TokenKind::kStatic);
  need(TokenKind::kFor);
  const Name index = name("an index");
  need(TokenKind::kIn);
  const Expr *low = sum();
  const Token dots = current;
  if (take(TokenKind::kDots)) {
    if (isStatic)
      fail(rangeOf(dots), "a static 'for' goes along an axis, and has no '..'")
          .hint("static for j in axis, an outer one");
    const Expr *high = sum();
    const Name by = takeWord("by") ? name("an axis") : Name{};
    const Expr *step = by.isEmpty() && takeWord("step") ? sum() : nullptr;
    const ScheduleList how = schedules();
    const Block body = block(first);
    return statementNode<ForStatement>(first, index, low, high, by, step, how, body);
  }
  const auto *axis = asIf<NameExpr>(low);
  if (!axis) {
    failExpected("'..'");
    return nullptr;
  }
  const Block body = block(first);
  return statementNode<ForAxisStatement>(first, isStatic, index, Name{axis->text, axis->range}, body);
}

// "store" [ "unique" ] place "=" expr
const Statement *Parser::storeStatement() {
  const Token first = current;
  take(TokenKind::kStore);
  // A tensor may be called so, too.
  const bool isUnique = following.kind == TokenKind::kName && takeWord("unique");
  const Place where = place();
  if (at(TokenKind::kPlusAssign))
    fail(here(), "a store does not add").hint("store x[..] = load x[..] + .., of a tensor that is inout");
  need(TokenKind::kAssign);
  const Expr *value = expr();
  return statementNode<StoreStatement>(first, isUnique, where, value);
}

// "report" expr "at" expr "if" expr
const Statement *Parser::reportStatement() {
  const Token first = current;
  take(TokenKind::kReport);
  const Expr *code = expr();
  if (!takeWord("at"))
    failExpected("'at'").hint("report CODE at PLACE if CONDITION");
  const Expr *where = expr();
  if (!take(TokenKind::kIf))
    failExpected("'if'").hint("report CODE at PLACE if CONDITION");
  const Expr *condition = expr();
  return statementNode<ReportStatement>(first, code, where, condition);
}

// "return" "if" expr | "return" expr
const Statement *Parser::returnStatement() {
  const Token first = current;
  take(TokenKind::kReturn);
  if (take(TokenKind::kIf)) {
    if (isInFunction || blocks > 0)
      fail(rangeOf(first), "'return if' stands at the top level of a kernel")
          .hint(isInFunction ? "c ? x : y chooses what a function returns" : "if c { .. } around what follows");
    const Expr *condition = expr();
    return statementNode<ReturnIfStatement>(first, condition);
  }
  if (!isInFunction)
    fail(rangeOf(first), "a kernel returns no value").hint("return if CONDITION ends a program early");
  else if (blocks > 1)
    fail(rangeOf(first), "'return' is the last statement of a function").hint("c ? x : y chooses what it returns");
  const Expr *value = expr();
  return statementNode<ReturnStatement>(first, value);
}

// target "=" expr | name "+=" expr | call
const Statement *Parser::assignment() {
  const Token first = current;
  if (at(TokenKind::kName) && following.kind == TokenKind::kOpenParenthesis) {
    const Expr *value = postfix();
    const auto *called = asIf<CallExpr>(value);
    if (!called) {
      fail(since(first), "expected a statement, found a value").hint("let x = ..");
      return nullptr;
    }
    return statementNode<CallStatement>(first, called);
  }
  if (at(TokenKind::kName) && following.kind == TokenKind::kOpenBracket) {
    fail(rangeOf(first), "elements are not assigned").hint("memory is written by store x[..] = ..");
    return nullptr;
  }
  if (at(TokenKind::kName) && following.kind == TokenKind::kName && !following.startsLine)
    return refuseWord();
  const Target names = target();
  const Token op = current;
  if (!names.isTuple && take(TokenKind::kPlusAssign)) {
    const Expr *value = expr();
    return statementNode<AddStatement>(first, names.names[0], rangeOf(op), value);
  }
  const bool isOther =
      at(TokenKind::kMinus) || at(TokenKind::kStar) || at(TokenKind::kSlash) || at(TokenKind::kPercent);
  if (isOther && following.kind == TokenKind::kAssign) {
    const std::string mark(textOf(op));
    fail(rangeOf(op), "there is no '" + mark + "='").hint("x = x " + mark + " ..");
  }
  if (!take(TokenKind::kAssign))
    failExpected(names.isTuple ? "'='" : "'=' or '+='");
  const Expr *value = expr();
  return statementNode<AssignStatement>(first, names, value);
}

// Two names, one behind the other, begin nothing: the first one may be a word of another language, or of another place.
const Statement *Parser::refuseWord() {
  const std::string word(textOf(current));
  if (itemKindOf(word) != ItemKind::kStatement) {
    fail(here(), "'" + word + "' stands outside of blocks").hint("is a '}' missing before it?");
    return nullptr;
  }
  const std::string_view nearest = blocks == 0 ? nearestBeginning(word) : std::string_view();
  Diagnostic &message = fail(here(), "'" + word + "' begins no statement");
  if (!nearest.empty())
    message.hint("did you mean '" + std::string(nearest) + "'?");
  return nullptr;
}

// A function returns a value, with its last statement.
void Parser::checkResult(const Name &function, const Block &body) {
  if (hasFailed)
    return;
  for (const Statement *inside : body.statements)
    if (inside->kind == StatementKind::kReturn && inside != body.statements.back())
      fail(inside->range, "'return' is the last statement of a function");
  if (body.statements.empty() || body.statements.back()->kind != StatementKind::kReturn)
    fail({body.range.file, body.range.end - 1, body.range.end},
         "the function '" + std::string(function.text) + "' returns nothing")
        .hint("its last statement is return VALUE");
}

} // namespace nsa::language
