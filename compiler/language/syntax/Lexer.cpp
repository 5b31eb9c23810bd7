#include "compiler/language/syntax/Lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <system_error>

namespace nsa::language {

namespace {

struct Spelling {
  TokenKind kind;
  std::string_view text;
};

constexpr Spelling kWords[] = {
    {TokenKind::kLet, "let"},       {TokenKind::kVar, "var"},       {TokenKind::kIf, "if"},
    {TokenKind::kElse, "else"},     {TokenKind::kFor, "for"},       {TokenKind::kStatic, "static"},
    {TokenKind::kIn, "in"},         {TokenKind::kLoad, "load"},     {TokenKind::kStore, "store"},
    {TokenKind::kReturn, "return"}, {TokenKind::kReport, "report"}, {TokenKind::kOver, "over"},
    {TokenKind::kAs, "as"},         {TokenKind::kBelow, "below"},   {TokenKind::kTrue, "true"},
    {TokenKind::kFalse, "false"},   {TokenKind::kInf, "inf"},       {TokenKind::kNan, "nan"},
};

// Those of one first character stand together, longer ones first, so that the first one that fits is the token.
constexpr Spelling kMarks[] = {
    {TokenKind::kDots, ".."},
    {TokenKind::kDot, "."},
    {TokenKind::kArrow, "->"},
    {TokenKind::kMinus, "-"},
    {TokenKind::kEqual, "=="},
    {TokenKind::kAssign, "="},
    {TokenKind::kUnequal, "!="},
    {TokenKind::kNot, "!"},
    {TokenKind::kLessEqual, "<="},
    {TokenKind::kLess, "<"},
    {TokenKind::kGreaterEqual, ">="},
    {TokenKind::kGreater, ">"},
    {TokenKind::kAnd, "&&"},
    {TokenKind::kOr, "||"},
    {TokenKind::kBar, "|"},
    {TokenKind::kPlusAssign, "+="},
    {TokenKind::kPlus, "+"},
    {TokenKind::kStar, "*"},
    {TokenKind::kSlash, "/"},
    {TokenKind::kPercent, "%"},
    {TokenKind::kQuestion, "?"},
    {TokenKind::kColon, ":"},
    {TokenKind::kSemicolon, ";"},
    {TokenKind::kComma, ","},
    {TokenKind::kOpenParenthesis, "("},
    {TokenKind::kCloseParenthesis, ")"},
    {TokenKind::kOpenBracket, "["},
    {TokenKind::kCloseBracket, "]"},
    {TokenKind::kOpenBrace, "{"},
    {TokenKind::kCloseBrace, "}"},
    {TokenKind::kAt, "@"},
};

// For each character the first of its marks, or the number of all marks where it has none.
constexpr auto kFirstMarks = [] {
  std::array<uint8_t, 256> firsts{};
  firsts.fill(static_cast<uint8_t>(std::size(kMarks)));
  for (size_t i = std::size(kMarks); i-- > 0;)
    firsts[static_cast<unsigned char>(kMarks[i].text[0])] = static_cast<uint8_t>(i);
  return firsts;
}();

// What to write instead of characters that other languages have.
struct Replacement {
  char character;
  std::string_view hint;
};
constexpr Replacement kReplacements[] = {
    {'"', "the language has no texts"},
    {'\'', "the language has no texts"},
    {'#', "a comment begins with //"},
    {'\\', "a line goes on by itself after an operator, after a comma and inside of brackets"},
    {'&', "did you mean '&&'?"},
    {'$', "a declared name needs no ${..}"},
};

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isNamePart(char c) { return isNameStart(c) || isDigit(c); }
bool isSpace(char c) { return c == ' ' || c == '\t' || c == '\r'; }

const Spelling *markAt(std::string_view rest) {
  for (size_t i = kFirstMarks[static_cast<unsigned char>(rest[0])]; i < std::size(kMarks); ++i) {
    if (rest.starts_with(kMarks[i].text))
      return &kMarks[i];
    if (kMarks[i].text[0] != rest[0])
      return nullptr;
  }
  return nullptr;
}

// The length of the characters from the begin of `rest` on of which no token can begin.
size_t unexpectedLength(std::string_view rest) {
  size_t length = 0;
  while (length < rest.size() && rest[length] != '\n' && !isSpace(rest[length]) && !isNamePart(rest[length]) &&
         !markAt(rest.substr(length)))
    ++length;
  return length;
}

} // namespace

std::string_view spellingOf(TokenKind kind) {
  for (const Spelling &word : kWords)
    if (word.kind == kind)
      return word.text;
  for (const Spelling &mark : kMarks)
    if (mark.kind == kind)
      return mark.text;
  return "";
}

bool continuesLine(TokenKind kind) {
  switch (kind) {
  case TokenKind::kDots:
  case TokenKind::kEqual:
  case TokenKind::kUnequal:
  case TokenKind::kLess:
  case TokenKind::kLessEqual:
  case TokenKind::kGreater:
  case TokenKind::kGreaterEqual:
  case TokenKind::kAnd:
  case TokenKind::kOr:
  case TokenKind::kPlusAssign:
  case TokenKind::kMinus:
  case TokenKind::kPlus:
  case TokenKind::kStar:
  case TokenKind::kSlash:
  case TokenKind::kPercent:
  case TokenKind::kAssign:
  case TokenKind::kQuestion:
  case TokenKind::kColon:
  case TokenKind::kComma:
  case TokenKind::kBar:
    return true;
  default:
    return false;
  }
}

Diagnostic &Lexer::error(size_t begin, size_t end, std::string what) {
  if (hasErrorInLine)
    return unreported = Diagnostic();
  hasErrorInLine = true;
  return diagnostics->error({file, static_cast<uint32_t>(begin), static_cast<uint32_t>(end)}, std::move(what));
}

Token Lexer::next() {
  Token token;
  token.startsLine = at == 0;
  do {
    skipSpace(token);
    token.begin = static_cast<uint32_t>(at);
    token.kind = scan();
    token.end = static_cast<uint32_t>(at);
  } while (token.kind == TokenKind::kComment && comments == Comments::kSkip);
  return token;
}

void Lexer::skipSpace(Token &token) {
  for (int ends = 0; at < text.size(); ++at) {
    if (text[at] == '\n') {
      token.startsLine = true;
      hasErrorInLine = false;
      token.followsBlankLine |= ++ends > 1;
    } else if (!isSpace(text[at])) {
      return;
    }
  }
}

TokenKind Lexer::scan() {
  if (at == text.size())
    return TokenKind::kEnd;
  const std::string_view rest = text.substr(at);
  if (isNameStart(rest[0])) {
    const auto *const end = std::ranges::find_if_not(rest, isNamePart);
    const std::string_view word = rest.substr(0, static_cast<size_t>(end - rest.begin()));
    at += word.size();
    const auto *found = std::ranges::find(kWords, word, &Spelling::text);
    return found == std::end(kWords) ? TokenKind::kName : found->kind;
  }
  if (isDigit(rest[0]))
    return scanNumber();
  if (rest.starts_with("//"))
    return scanComment();
  if (rest.starts_with("/*")) {
    error(at, at + 2, "there are no comments in /* */").hint("a comment begins with // and ends with its line");
    at = std::min(text.find('\n', at), text.size());
    return TokenKind::kError;
  }
  if (const Spelling *mark = markAt(rest)) {
    at += mark->text.size();
    return mark->kind;
  }
  return scanUnexpected();
}

TokenKind Lexer::scanComment() {
  const size_t begin = at;
  at = std::min(text.find('\n', at), text.size());
  if (text.substr(begin).starts_with("//!") && !hasRefusedHeader) {
    hasRefusedHeader = true; // where one line has it, all do
    error(begin, begin + 3, "a tile program has no lines with '//!'")
        .hint("write the declaration itself: choice key_tile = 16 | 32");
  }
  return TokenKind::kComment;
}

TokenKind Lexer::scanUnexpected() {
  const size_t begin = at;
  at += unexpectedLength(text.substr(at));
  const std::string_view found = text.substr(begin, at - begin);
  // A whole line of them is not worth repeating.
  size_t shown = std::min<size_t>(found.size(), 16);
  while (shown < found.size() && (static_cast<unsigned char>(found[shown]) & 0xC0) == 0x80)
    ++shown;
  Diagnostic &message = error(begin, at, "unexpected '" + std::string(found.substr(0, shown)) + "'");
  const auto *replacement = std::ranges::find(kReplacements, found[0], &Replacement::character);
  if (replacement != std::end(kReplacements))
    message.hint(std::string(replacement->hint));
  return TokenKind::kError;
}

size_t Lexer::skipDigits() {
  const size_t begin = at;
  while (at < text.size() && isDigit(text[at]))
    ++at;
  return at - begin;
}

// Digits, with a point and digits behind it, with an exponent: 16, 0.5, 1e9, 2.5e-3.
TokenKind Lexer::scanNumber() {
  const size_t begin = at;
  const auto isAt = [&](size_t place, char c) { return place < text.size() && text[place] == c; };
  bool isInteger = true;
  skipDigits();
  if (isAt(at, '.') && !isAt(at + 1, '.')) {
    isInteger = false;
    ++at;
    if (skipDigits() == 0) {
      error(begin, at, "digits are missing behind the point").hint(std::string(text.substr(begin, at - begin)) + "0");
      return TokenKind::kError;
    }
  }
  if (isAt(at, 'e')) {
    const size_t sign = at + 1 + (isAt(at + 1, '+') || isAt(at + 1, '-') ? 1 : 0);
    if (sign < text.size() && isDigit(text[sign])) {
      isInteger = false;
      at = sign;
      skipDigits();
    }
  }
  const size_t end = at;
  while (at < text.size() && isNamePart(text[at]))
    ++at;
  if (at != end) {
    error(begin, at,
          "a number and letters: '" + std::string(text.substr(begin, std::min<size_t>(at - begin, 32))) + "'")
        .hint("numbers are decimal, and a name does not begin with a digit");
    return TokenKind::kError;
  }
  const char *first = text.data() + begin, *last = text.data() + end;
  int64_t integer = 0;
  double real = 0;
  const std::errc result = isInteger ? std::from_chars(first, last, integer).ec : std::from_chars(first, last, real).ec;
  if (result == std::errc())
    return TokenKind::kNumber;
  error(begin, end, isInteger ? "the integer is too large" : "the number is out of the range of f64")
      .hint(isInteger ? "an i32 is at most 2147483647; with a point a number is f32" : "");
  return TokenKind::kError;
}

} // namespace nsa::language
