#include "compiler/language/syntax/ParserRules.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace nsa::language {

namespace {

struct Comparison {
  TokenKind token;
  BinaryOp op;
};

constexpr Comparison kComparisons[] = {
    {TokenKind::kEqual, BinaryOp::kEqual},     {TokenKind::kUnequal, BinaryOp::kUnequal},
    {TokenKind::kLess, BinaryOp::kLess},       {TokenKind::kLessEqual, BinaryOp::kLessEqual},
    {TokenKind::kGreater, BinaryOp::kGreater}, {TokenKind::kGreaterEqual, BinaryOp::kGreaterEqual},
};

const Comparison *comparisonOf(TokenKind token) {
  const auto *found = std::ranges::find(kComparisons, token, &Comparison::token);
  return found == std::end(kComparisons) ? nullptr : found;
}

} // namespace

// expr = or [ "?" expr ":" expr ]
const Expr *Parser::expr() {
  const Nested nested(*this);
  const Token first = current;
  const Expr *condition = orExpr();
  const Token op = current;
  if (!take(TokenKind::kQuestion))
    return condition;
  const Expr *ifTrue = expr();
  need(TokenKind::kColon);
  const Expr *ifFalse = expr();
  return expression<ConditionalExpr>(since(first), above({condition, ifTrue, ifFalse}), rangeOf(op), condition, ifTrue,
                                     ifFalse);
}

// operand { operator operand }
const Expr *Parser::binary(std::initializer_list<Operator> operators, const Expr *(Parser::*operand)()) {
  const Token first = current;
  const Expr *left = (this->*operand)();
  for (;;) {
    const auto *found = std::ranges::find(operators, kind(), &Operator::token);
    if (found == operators.end())
      return left;
    const Token op = current;
    take(op.kind);
    const Expr *right = (this->*operand)();
    left = expression<BinaryExpr>(since(first), above({left, right}), found->op, rangeOf(op), left, right);
  }
}

// or = and { "||" and }
const Expr *Parser::orExpr() { return binary({{TokenKind::kOr, BinaryOp::kOr}}, &Parser::andExpr); }

// and = compare { "&&" compare }
const Expr *Parser::andExpr() { return binary({{TokenKind::kAnd, BinaryOp::kAnd}}, &Parser::compare); }

// compare = refined [ ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) refined | "in" sum ".." sum ]
const Expr *Parser::compare() {
  const Token first = current;
  const Expr *left = refined();
  const Token op = current;
  if (take(TokenKind::kIn)) {
    const Expr *low = sum();
    need(TokenKind::kDots);
    const Expr *high = sum();
    refuseChain(left, op.kind, high);
    return expression<InExpr>(since(first), above({left, low, high}), rangeOf(op), left, low, high);
  }
  const Comparison *comparison = comparisonOf(kind());
  if (!comparison)
    return left;
  take(op.kind);
  const Expr *right = refined();
  refuseChain(left, op.kind, right);
  return expression<BinaryExpr>(since(first), above({left, right}), comparison->op, rangeOf(op), left, right);
}

// `left op middle` is read, and another comparison follows.
void Parser::refuseChain(const Expr *left, TokenKind op, const Expr *middle) {
  const TokenKind next = kind();
  if (next != TokenKind::kIn && !comparisonOf(next))
    return;
  Diagnostic &message = fail(rangeOf(current), "comparisons do not chain");
  const bool isRange = op == TokenKind::kLessEqual && (next == TokenKind::kLess || next == TokenKind::kLessEqual);
  if (!isRange) {
    message.hint("a < b && b < c");
    return;
  }
  hasFailed = false; // to read the end of the range for the hint
  take(next);
  const Expr *right = refined();
  if (!hasFailed)
    message.hint(std::string(middle->range.text()) + " in " + std::string(left->range.text()) + " .. " +
                 std::string(right->range.text()) + (next == TokenKind::kLessEqual ? " + 1" : ""));
  hasFailed = true;
}

// refined = sum [ "below" sum ]
const Expr *Parser::refined() {
  const Token first = current;
  const Expr *index = sum();
  const Token op = current;
  if (!take(TokenKind::kBelow))
    return index;
  const Expr *bound = sum();
  return expression<BelowExpr>(since(first), above({index, bound}), rangeOf(op), index, bound);
}

// sum = product { ( "+" | "-" ) product }
const Expr *Parser::sum() {
  return binary({{TokenKind::kPlus, BinaryOp::kAdd}, {TokenKind::kMinus, BinaryOp::kSubtract}}, &Parser::product);
}

// product = cast { ( "*" | "/" | "%" ) cast }
const Expr *Parser::product() {
  return binary({{TokenKind::kStar, BinaryOp::kMultiply},
                 {TokenKind::kSlash, BinaryOp::kDivide},
                 {TokenKind::kPercent, BinaryOp::kRemainder}},
                &Parser::cast);
}

// cast = unary { "as" element }
const Expr *Parser::cast() {
  const Token first = current;
  const Expr *value = unary();
  while (take(TokenKind::kAs)) {
    const Name target = element();
    value = expression<CastExpr>(since(first), above({value}), value, target);
  }
  return value;
}

// unary = ( "-" | "!" ) unary | postfix
const Expr *Parser::unary() {
  const Token first = current;
  if (!at(TokenKind::kMinus) && !at(TokenKind::kNot))
    return postfix();
  const Nested nested(*this);
  const UnaryOp op = take(TokenKind::kMinus) ? UnaryOp::kNegate : UnaryOp::kNot;
  take(TokenKind::kNot);
  const Expr *operand = unary();
  return expression<UnaryExpr>(since(first), above({operand}), op, rangeOf(first), operand);
}

// postfix = primary { "." name | "[" name ":" expr "]" }
const Expr *Parser::postfix() {
  const Token first = current;
  const Expr *base = primary();
  for (;;) {
    // Written without a blank, the point would be the number's.
    if (at(TokenKind::kDot) && previous.kind == TokenKind::kNumber)
      fail(here(), "a number has no field");
    if (take(TokenKind::kDot)) {
      const Name field = name("a field");
      base = expression<FieldExpr>(since(first), above({base}), base, field);
    } else if (at(TokenKind::kOpenBracket)) {
      base = pick(first, base);
    } else {
      return base;
    }
  }
}

// "[" name ":" expr "]", or the axes of a call: "[" name ":" name { "," name ":" name } "]" in front of "("
const Expr *Parser::pick(const Token &first, const Expr *base) {
  struct Entry {
    Name axis;
    const Expr *index;
  };
  const Token open = current;
  take(TokenKind::kOpenBracket);
  if (!at(TokenKind::kName) || following.kind != TokenKind::kColon) {
    refuseIndex(base, open);
    return base;
  }
  const auto entries = list<Entry>([&] {
    const Name axis = name("an axis");
    need(TokenKind::kColon);
    return Entry{axis, expr()};
  });
  needClosing(TokenKind::kCloseBracket, open);
  const auto *callee = asIf<NameExpr>(base);
  if (!callee || !at(TokenKind::kOpenParenthesis)) {
    if (entries.size() > 1)
      fail(entries[1].axis.range, "a pick goes along one axis").hint("x[a: i][b: j]");
    return expression<PickExpr>(since(first), above({base, entries[0].index}), base, entries[0].axis, entries[0].index);
  }
  std::vector<AxisArgument> axisArguments;
  for (const Entry &entry : entries) {
    const auto *axis = asIf<NameExpr>(entry.index);
    if (!axis) {
      fail(entry.index->range, "an axis of a function stands for an axis of the call, and this is none");
      return base;
    }
    axisArguments.push_back({entry.axis, {axis->text, axis->range}});
  }
  return call(first, {callee->text, callee->range}, tree.arena.copy(axisArguments));
}

void Parser::refuseIndex(const Expr *base, const Token &open) {
  const auto *tensor = asIf<NameExpr>(base);
  if (tensor && tensors.contains(tensor->text)) {
    fail(tensor->range,
         "'" + std::string(tensor->text) + "' is memory: write load " + std::string(tensor->text) + "[..]");
    return;
  }
  fail(rangeOf(open), "a pick needs its axis").hint("x[axis: i]; memory is read by load x[..]");
}

// primary = number | "true" | "false" | "inf" | "nan" | name | "(" exprs ")" | "load" place { schedule } | call
const Expr *Parser::primary() {
  const Token first = current;
  switch (kind()) {
  case TokenKind::kNumber:
    return number();
  case TokenKind::kTrue:
  case TokenKind::kFalse:
    take(first.kind);
    return expression<BoolExpr>(rangeOf(first), 1, first.kind == TokenKind::kTrue);
  case TokenKind::kInf:
  case TokenKind::kNan: {
    take(first.kind);
    using Limits = std::numeric_limits<double>;
    const double value = first.kind == TokenKind::kInf ? Limits::infinity() : Limits::quiet_NaN();
    return expression<NumberExpr>(rangeOf(first), 1, false, int64_t{0}, value);
  }
  case TokenKind::kLoad:
    return loadExpr();
  case TokenKind::kOpenParenthesis:
    return parenthesized();
  case TokenKind::kName: {
    const Name word = name();
    if (at(TokenKind::kOpenParenthesis))
      return call(first, word, {});
    return expression<NameExpr>(rangeOf(first), 1, word.text);
  }
  case TokenKind::kIf:
    failExpected("an expression").hint("c ? x : y chooses a value");
    return nullptr;
  default:
    failExpected("an expression");
    return nullptr;
  }
}

const NumberExpr *Parser::number() {
  const Token token = current;
  if (!take(TokenKind::kNumber)) {
    failExpected("a number");
    return nullptr;
  }
  const std::string_view text = textOf(token);
  const bool isInteger = text.find_first_of(".e") == std::string_view::npos;
  int64_t integer = 0;
  double real = 0; // the lexer has seen that both are in range
  std::from_chars(text.data(), text.data() + text.size(), real);
  if (isInteger)
    std::from_chars(text.data(), text.data() + text.size(), integer);
  return expression<NumberExpr>(rangeOf(token), 1, isInteger, integer, real);
}

const Expr *Parser::parenthesized() {
  const Token open = current;
  take(TokenKind::kOpenParenthesis);
  const ExprList elements = exprs();
  needClosing(TokenKind::kCloseParenthesis, open);
  return elements.size() == 1 ? elements[0] : expression<TupleExpr>(since(open), above(elements), elements);
}

const Expr *Parser::loadExpr() {
  const Token first = current;
  take(TokenKind::kLoad);
  const Place from = place();
  const ScheduleList how = schedules();
  uint32_t height = above({from.pickIndex, from.column, from.condition});
  height = std::max(height, above(from.coordinates));
  for (const Schedule &schedule : how)
    height = std::max(height, above({schedule.value}));
  return expression<LoadExpr>(since(first), height, from, how);
}

// place = tensorref "[" [ exprs ] [ ";" expr ] [ "if" expr ] "]"; tensorref = name [ "[" name ":" expr "]" ]
Place Parser::place() {
  Place read{};
  const Token first = current;
  read.tensor = name("a tensor");
  Token open = current;
  need(TokenKind::kOpenBracket);
  if (at(TokenKind::kName) && following.kind == TokenKind::kColon) {
    read.pickAxis = name();
    need(TokenKind::kColon);
    read.pickIndex = expr();
    needClosing(TokenKind::kCloseBracket, open);
    open = current;
    need(TokenKind::kOpenBracket);
  }
  if (!at(TokenKind::kSemicolon) && !at(TokenKind::kIf) && !at(TokenKind::kCloseBracket))
    read.coordinates = exprs();
  if (take(TokenKind::kSemicolon))
    read.column = expr();
  if (take(TokenKind::kIf))
    read.condition = expr();
  needClosing(TokenKind::kCloseBracket, open);
  read.range = since(first);
  return read;
}

// schedule = "@" name "(" expr ")"
ScheduleList Parser::schedules() {
  std::vector<Schedule> found;
  while (at(TokenKind::kAt)) {
    const Token first = current;
    take(TokenKind::kAt);
    const Name word = name("a schedule");
    const Token open = current;
    need(TokenKind::kOpenParenthesis);
    const Expr *value = expr();
    needClosing(TokenKind::kCloseParenthesis, open);
    found.push_back({since(first), word, value});
  }
  return tree.arena.copy(found);
}

// call = name [ axes ] "(" [ exprs ] ")" [ "over" ( name | "(" names ")" ) [ "when" or ] ]
const Expr *Parser::call(const Token &first, const Name &callee, std::span<const AxisArgument> axisArguments) {
  const Token open = current;
  take(TokenKind::kOpenParenthesis);
  ExprList arguments;
  if (!at(TokenKind::kCloseParenthesis))
    arguments = exprs();
  needClosing(TokenKind::kCloseParenthesis, open);
  NameList over;
  const Expr *when = nullptr;
  if (take(TokenKind::kOver)) {
    over = overAxes();
    if (takeWord("when"))
      when = orExpr();
  }
  const uint32_t height = std::max(above(arguments), above({when}));
  return expression<CallExpr>(since(first), height, callee, axisArguments, arguments, over, when);
}

NameList Parser::overAxes() {
  const Token open = current;
  if (!take(TokenKind::kOpenParenthesis)) {
    const Name axis = name("an axis");
    return tree.arena.copy(std::vector<Name>{axis});
  }
  const NameList found = names();
  needClosing(TokenKind::kCloseParenthesis, open);
  return found;
}

} // namespace nsa::language
