// The tokens of the tile language.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace nsa::language {

enum class TokenKind : uint8_t {
  kEnd,     // of the file
  kNewline, // the parser's: the statement ends, as the next token begins a line
  kError,   // what is no token, and was reported
  kComment,
  kName,
  kNumber,
  // the reserved words
  kLet,
  kVar,
  kIf,
  kElse,
  kFor,
  kStatic,
  kIn,
  kLoad,
  kStore,
  kReturn,
  kReport,
  kOver,
  kAs,
  kBelow,
  kTrue,
  kFalse,
  kInf,
  kNan,
  // punctuation
  kDots,
  kArrow,
  kEqual,
  kUnequal,
  kLessEqual,
  kGreaterEqual,
  kAnd,
  kOr,
  kPlusAssign,
  kMinus,
  kPlus,
  kStar,
  kSlash,
  kPercent,
  kLess,
  kGreater,
  kAssign,
  kNot,
  kQuestion,
  kColon,
  kSemicolon,
  kComma,
  kDot,
  kOpenParenthesis,
  kCloseParenthesis,
  kOpenBracket,
  kCloseBracket,
  kOpenBrace,
  kCloseBrace,
  kBar,
  kAt,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  bool startsLine = false;       // it is the first one of its line
  bool followsBlankLine = false; // there is an empty line between it and the token before
  uint32_t begin = 0, end = 0;   // in the text of the file
};

// How a reserved word or a punctuation mark is written; "" for other tokens.
std::string_view spellingOf(TokenKind kind);

inline bool isReserved(TokenKind kind) { return kind >= TokenKind::kLet && kind <= TokenKind::kNan; }
inline bool opens(TokenKind kind) {
  return kind == TokenKind::kOpenParenthesis || kind == TokenKind::kOpenBracket || kind == TokenKind::kOpenBrace;
}
inline bool closes(TokenKind kind) {
  return kind == TokenKind::kCloseParenthesis || kind == TokenKind::kCloseBracket || kind == TokenKind::kCloseBrace;
}

// Whether a statement goes on in the next line when its line ends with this token: something has to follow it.
bool continuesLine(TokenKind kind);

} // namespace nsa::language
