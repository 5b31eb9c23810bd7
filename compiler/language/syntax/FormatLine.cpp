#include "compiler/language/syntax/FormatLine.h"

#include "compiler/language/syntax/Format.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace nsa::language {

namespace {

// Where the text of a declaration begins, for the words that stand in a column.
constexpr size_t kDeclarationColumn = 8;
constexpr std::string_view kColumnWords[] = {"targets", "fixed", "const", "choice",  "require", "cost",
                                             "work",    "grid",  "axis",  "threads", "tensor",  "scalar"};
constexpr size_t kContinuation = 4;
// A longer target would push the others too far to the right.
constexpr size_t kWidestTarget = 16;
// A line is not broken so early, if it can be broken later.
constexpr size_t kEarliestBreak = kLineWidth / 6;

// How loosely the sign of an operator binds, from the loosest to the tightest; -1: it is none that a line may end with.
int levelOf(TokenKind kind) {
  switch (kind) {
  case TokenKind::kComma:
  case TokenKind::kSemicolon:
    return 0;
  case TokenKind::kBar:
    return 1;
  case TokenKind::kOr:
    return 3;
  case TokenKind::kAnd:
    return 4;
  case TokenKind::kEqual:
  case TokenKind::kUnequal:
  case TokenKind::kLess:
  case TokenKind::kLessEqual:
  case TokenKind::kGreater:
  case TokenKind::kGreaterEqual:
    return 5;
  case TokenKind::kPlus:
  case TokenKind::kMinus:
    return 6;
  case TokenKind::kStar:
  case TokenKind::kSlash:
  case TokenKind::kPercent:
    return 7;
  case TokenKind::kAssign:
  case TokenKind::kPlusAssign:
    return 8;
  default:
    return -1;
  }
}
constexpr int kConditionalLevel = 2;

bool endsOperand(TokenKind kind) {
  switch (kind) {
  case TokenKind::kName:
  case TokenKind::kNumber:
  case TokenKind::kTrue:
  case TokenKind::kFalse:
  case TokenKind::kInf:
  case TokenKind::kNan:
  case TokenKind::kCloseParenthesis:
  case TokenKind::kCloseBracket:
    return true;
  default:
    return false;
  }
}

} // namespace

// Reads words one after the other and says of each how it stands.
class FormatLine::Reader {
public:
  Piece read(const Word &word, bool isDeclarationWord) {
    const bool followsOperand = isOperand;
    const bool isUnary = word.kind == TokenKind::kNot || (word.kind == TokenKind::kMinus && !followsOperand);
    // Of two names in a row the second one is a word such as `by`, but behind `store unique`; only `paged` is written
    // like a call.
    const bool isInner = word.kind == TokenKind::kName && followsOperand && !followsUnique && word.text != "paged";
    const bool isWord = isDeclarationWord || isInner;
    followsUnique = previous == TokenKind::kStore && word.kind == TokenKind::kName && word.text == "unique";
    bool isOfConditional = word.kind == TokenKind::kQuestion;
    if (word.kind == TokenKind::kColon && conditionals.back() > 0) {
      isOfConditional = true;
      --conditionals.back();
    }
    Piece piece;
    piece.text = word.text;
    piece.blanks = isFirst ? 0 : blanksBefore(word.kind, followsOperand, isOfConditional);
    if (word.kind == TokenKind::kQuestion)
      ++conditionals.back();
    if (opens(word.kind))
      conditionals.push_back(0);
    if (closes(word.kind) && conditionals.size() > 1)
      conditionals.pop_back();
    piece.depth = static_cast<uint32_t>(conditionals.size() - 1);
    piece.breakLevel = isUnary ? -1 : isOfConditional ? kConditionalLevel : levelOf(word.kind);
    previous = word.kind;
    isGlued = isUnary || word.kind == TokenKind::kDot || word.kind == TokenKind::kAt ||
              word.kind == TokenKind::kOpenParenthesis || word.kind == TokenKind::kOpenBracket;
    isOperand = !isWord && endsOperand(word.kind);
    isFirst = false;
    return piece;
  }

private:
  size_t blanksBefore(TokenKind kind, bool followsOperand, bool isOfConditional) const {
    switch (kind) {
    case TokenKind::kComma:
    case TokenKind::kSemicolon:
    case TokenKind::kDot:
    case TokenKind::kCloseParenthesis:
    case TokenKind::kCloseBracket:
      return 0;
    case TokenKind::kColon:
      return isOfConditional ? 1 : 0;
    case TokenKind::kCloseBrace:
      return previous == TokenKind::kOpenBrace ? 0 : 1;
    case TokenKind::kOpenParenthesis:
    case TokenKind::kOpenBracket:
      return followsOperand || isGlued ? 0 : 1;
    default:
      return isGlued ? 0 : 1;
    }
  }

  TokenKind previous = TokenKind::kEnd;
  bool isFirst = true, isGlued = false, isOperand = false, followsUnique = false;
  std::vector<int> conditionals = {0}; // `?` without their `:`, in each bracket that is open
};

FormatLine::FormatLine(std::span<const Word> words, size_t indent, bool isDeclaration)
    : indent(indent), continuation(indent + kContinuation) {
  Reader reader;
  for (const Word &word : words)
    pieces.push_back(reader.read(word, isDeclaration && pieces.empty()));
  const auto stands = [&](std::string_view word) { return word == words[0].text; };
  if (isDeclaration && pieces.size() > 1 && std::ranges::any_of(kColumnWords, stands)) {
    pieces[1].blanks = kDeclarationColumn - pieces[0].text.size();
    continuation = kDeclarationColumn;
  } else if (!isDeclaration) {
    findRun(words);
  }
}

void FormatLine::findRun(std::span<const Word> words) {
  if (words.empty())
    return;
  const bool isLet = words[0].kind == TokenKind::kLet;
  if (!isLet && words[0].kind != TokenKind::kName && words[0].kind != TokenKind::kOpenParenthesis)
    return;
  const auto isSign = [](const Word &word) {
    return word.kind == TokenKind::kAssign || word.kind == TokenKind::kPlusAssign;
  };
  const auto sign = std::ranges::find_if(words, isSign);
  if (sign == words.end())
    return;
  signPiece = static_cast<size_t>(sign - words.begin());
  const size_t begin = isLet ? spellingOf(TokenKind::kLet).size() + 1 : 0;
  if (signEnd() - sign->text.size() - 1 - begin <= kWidestTarget)
    runKind = isLet ? Run::kLet : Run::kAssignment;
}

size_t FormatLine::signEnd() const {
  size_t end = 0;
  for (size_t i = 0; i <= signPiece; ++i)
    end += pieces[i].blanks + pieces[i].text.size();
  return end;
}

size_t FormatLine::width() const {
  size_t columns = indent;
  for (size_t i = 0; i < pieces.size(); ++i)
    columns += blanksBefore(i) + pieces[i].text.size();
  return columns;
}

// The piece that the next line begins with, where this one begins with the piece `begin` in `column`.
size_t FormatLine::pastLine(size_t begin, size_t column) const {
  // Better breaks come first: fewer open brackets, an operator that binds less, further to the right.
  struct Break {
    bool isEarly;
    uint32_t depth;
    int level;
    size_t past;
  };
  const auto better = [](const Break &a, const Break &b) {
    if (a.isEarly != b.isEarly)
      return !a.isEarly;
    return a.depth != b.depth ? a.depth < b.depth : a.level != b.level ? a.level < b.level : a.past > b.past;
  };
  Break best{true, UINT32_MAX, INT32_MAX, 0};
  for (size_t i = begin; i < pieces.size(); ++i) {
    column += (i == begin ? 0 : blanksBefore(i)) + pieces[i].text.size();
    if (column > kLineWidth && best.past != 0)
      return best.past;
    if (pieces[i].breakLevel < 0 || i + 1 == pieces.size())
      continue;
    const Break found{column < kEarliestBreak, pieces[i].depth, pieces[i].breakLevel, i + 1};
    if (column > kLineWidth)
      return found.past; // no break fits, and this one comes first
    if (better(found, best))
      best = found;
  }
  return pieces.size();
}

std::string FormatLine::toString(std::string_view comment) const {
  std::string text(indent, ' ');
  size_t begin = 0, column = indent;
  while (begin < pieces.size()) {
    const size_t past = width() <= kLineWidth ? pieces.size() : pastLine(begin, column);
    for (size_t i = begin; i < past; ++i)
      text.append(i == begin ? 0 : blanksBefore(i), ' ').append(pieces[i].text);
    begin = past;
    if (begin < pieces.size()) {
      text.append("\n").append(continuation, ' ');
      column = continuation;
    }
  }
  if (!comment.empty())
    text.append(pieces.empty() ? "" : " ").append(comment);
  return text + "\n";
}

} // namespace nsa::language
