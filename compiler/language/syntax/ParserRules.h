// The parser's state and its rules: one function for each rule of the grammar (docs/language.md).
// After a mistake a rule does not stop: the parser has failed, no token matches any more, and all rules return, until a
// statement or a declaration recovers. What they return then is of no use, and may be nullptr.
// Thread-safety: none.
#pragma once

#include "compiler/language/syntax/Lexer.h"
#include "compiler/language/syntax/Parser.h"
#include "compiler/language/syntax/Syntax.h"

#include <initializer_list>
#include <string>
#include <unordered_set>
#include <vector>

namespace nsa::language {

class Parser {
public:
  Parser(const SourceFile &file, Diagnostics &diagnostics, SyntaxTree &tree);

  void parseFile();

private:
  // A part of the text that is nested in others of its kind. Too deep is the end of reading.
  class Nested {
  public:
    explicit Nested(Parser &parser) : parser(parser) { parser.enter(); }
    Nested(const Nested &) = delete;
    Nested &operator=(const Nested &) = delete;
    ~Nested() { --parser.nesting; }

  private:
    Parser &parser;
  };

  // --- tokens (Parser.cpp)
  // The next token, as rules see it.
  TokenKind kind() const;
  bool at(TokenKind expected) const { return kind() == expected; }
  // Whether the next token is this word, which is no reserved one.
  bool atWord(std::string_view word) const;
  bool take(TokenKind expected);
  bool takeWord(std::string_view word);
  void need(TokenKind expected);
  // The bracket that closes `open`.
  void needClosing(TokenKind expected, const Token &open);
  void advance();
  std::string_view textOf(const Token &token) const {
    return tree.source->text().substr(token.begin, token.end - token.begin);
  }
  SourceRange rangeOf(const Token &token) const { return {tree.source, token.begin, token.end}; }
  SourceRange here() const;
  // From a token to the last one that was taken.
  SourceRange since(const Token &first) const { return {tree.source, first.begin, previous.end}; }
  std::string describeNext() const;
  // Reports and fails, where no mistake is being left already. The message is only good for adding to.
  Diagnostic &fail(const SourceRange &range, std::string text);
  Diagnostic &failExpected(std::string_view what);
  void enter();
  void stop();

  // --- recovery (Parser.cpp)
  void endStatement();
  void skipNewlines();
  void recover();
  bool beginsStatement() const;
  bool isInnerWord(const Token &token) const;

  // --- lists
  // One or more, with commas between them.
  template <typename T, typename Rule> std::span<const T> list(Rule rule) {
    std::vector<T> found;
    do
      found.push_back(rule());
    while (take(TokenKind::kComma));
    return tree.arena.copy(found);
  }

  // --- nodes
  template <typename T, typename... Fields>
  const T *expression(const SourceRange &range, uint32_t height, Fields &&...fields) {
    checkHeight(range, height);
    return tree.arena.make<T>(Expr{T::kKind, static_cast<uint16_t>(height), tree.expressionCount++, range},
                              std::forward<Fields>(fields)...);
  }
  template <typename T, typename... Fields> const T *statementNode(const Token &first, Fields &&...fields) {
    return tree.arena.make<T>(Statement{T::kKind, since(first)}, std::forward<Fields>(fields)...);
  }
  template <typename T, typename... Fields> const T *itemNode(const Token &first, Fields &&...fields) {
    return tree.arena.make<T>(Item{T::kKind, since(first)}, std::forward<Fields>(fields)...);
  }
  void checkHeight(const SourceRange &range, uint32_t height);
  static uint32_t above(std::initializer_list<const Expr *> children);
  static uint32_t above(ExprList children);

  // --- names and types (ParseItems.cpp)
  Name name(std::string_view what = "a name");
  NameList names() {
    return list<Name>([&] { return name(); });
  }
  Name element();
  NameList axes();
  const TypeSyntax *type();

  // --- expressions, from the loosest to the tightest (ParseExpressions.cpp)
  const Expr *expr();
  const Expr *orExpr();
  const Expr *andExpr();
  const Expr *compare();
  const Expr *refined();
  const Expr *sum();
  const Expr *product();
  const Expr *cast();
  const Expr *unary();
  const Expr *postfix();
  const Expr *primary();
  const Expr *parenthesized();
  const NumberExpr *number();
  const Expr *loadExpr();
  const Expr *pick(const Token &first, const Expr *base);
  const Expr *call(const Token &first, const Name &callee, std::span<const AxisArgument> axisArguments);
  NameList overAxes();
  Place place();
  ScheduleList schedules();
  ExprList exprs() {
    return list<const Expr *>([&] { return expr(); });
  }
  struct Operator {
    TokenKind token;
    BinaryOp op;
  };
  const Expr *binary(std::initializer_list<Operator> operators, const Expr *(Parser::*operand)());
  void refuseChain(const Expr *left, TokenKind op, const Expr *middle);
  void refuseIndex(const Expr *base, const Token &open);

  // --- statements (ParseStatements.cpp)
  const Statement *statement();
  // A block of what begins with `owner`.
  Block block(const Token &owner);
  std::span<const Statement *const> statements(const Token &open, const Token &owner);
  Target target();
  const Statement *letStatement();
  const Statement *varStatement();
  const Statement *ifStatement();
  const Statement *forStatement();
  const Statement *storeStatement();
  const Statement *reportStatement();
  const Statement *returnStatement();
  const Statement *assignment();
  const Statement *refuseWord();
  void checkResult(const Name &function, const Block &body);

  // --- declarations (ParseItems.cpp)
  const Item *item();
  const Item *declaration(ItemKind itemKind);
  const Item *kernelItem(const Token &first);
  const Item *libraryItem(const Token &first);
  const Item *referenceItem(const Token &first);
  const Item *fixedItem(const Token &first);
  const Item *workItem(const Token &first);
  const Item *choiceItem(const Token &first);
  const Item *gridItem(const Token &first);
  const Item *axisItem(const Token &first);
  const Item *tensorItem(const Token &first);
  const Item *recordItem(const Token &first);
  const Item *functionItem(const Token &first);
  Binding binding();
  FieldList fields();
  TensorItem::Declaration tensor();
  void readCoordinates(TensorItem::Declaration &read);
  void checkPlacement(const Item &item);

  SyntaxTree &tree;
  Diagnostics &diagnostics;
  Lexer lexer;
  Token previous, current, following;
  uint32_t brackets = 0; // that are open, ( and [: inside of them lines end nothing
  uint32_t nesting = 0;
  bool hasFailed = false;
  bool hasStopped = false; // nothing more is read, and nothing more reported
  bool isInFunction = false;
  bool hasRefusedHead = false, hasRefusedStatement = false; // once is enough
  uint32_t blocks = 0;                                      // that are open
  std::unordered_set<std::string_view> tensors, works;      // that the file has declared so far
  Diagnostic unreported;
};

// The declaration that begins with this word; kStatement if none does.
ItemKind itemKindOf(std::string_view word);
// The word that begins a declaration or a statement and is most like this one; "" where none is.
std::string_view nearestBeginning(std::string_view word);

} // namespace nsa::language
