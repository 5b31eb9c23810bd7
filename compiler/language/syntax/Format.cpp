#include "compiler/language/syntax/Format.h"

#include "compiler/language/syntax/FormatLine.h"
#include "compiler/language/syntax/Lexer.h"
#include "compiler/language/syntax/Parser.h"
#include "compiler/language/syntax/ParserRules.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace nsa::language {

namespace {

constexpr size_t kIndent = 2;

class Formatter {
public:
  Formatter(const SourceFile &file, Diagnostics &diagnostics) : text(file.text()) {
    Lexer lexer(file, diagnostics, Lexer::Comments::kKeep);
    do
      tokens.push_back(lexer.next());
    while (tokens.back().kind != TokenKind::kEnd);
  }

  std::string run() {
    sequence(0, 0);
    alignRuns();
    std::string out;
    for (const Line &line : lines) {
      if (line.followsBlankLine && !out.empty())
        out += '\n';
      out += line.words.toString(line.comment);
    }
    return out;
  }

private:
  struct Line {
    FormatLine words;
    std::string_view comment; // behind the words; the whole line where there are none
    bool followsBlankLine;
  };

  // Comments, statements and declarations from the token `at` on, to the brace that closes their block or to the end.
  // Returns the token behind them.
  size_t sequence(size_t at, size_t indent) {
    const size_t firstLine = lines.size();
    while (tokens[at].kind != TokenKind::kEnd && tokens[at].kind != TokenKind::kCloseBrace) {
      if (tokens[at].kind == TokenKind::kComment) {
        addComment(tokens[at++], indent);
        continue;
      }
      at = statement(at, indent);
    }
    if (firstLine < lines.size())
      lines[firstLine].followsBlankLine &= indent == 0; // none behind the brace that opens a block
    return at;
  }

  // One statement or declaration, with the comment behind it.
  size_t statement(size_t begin, size_t indent) {
    const size_t end = pastStatement(begin);
    bool followsBlankLine = tokens[begin].followsBlankLine;
    const bool isDeclaration = declares(begin, indent);
    const bool hasBlocks = !isDeclaration || tokenText(begin) == "fn";
    bool isSpread = false; // over several lines, with blocks
    for (size_t i = begin, braces = 0; hasBlocks && i < end; ++i) {
      isSpread |= braces > 0 && (tokens[i].startsLine || tokens[i].kind == TokenKind::kComment);
      braces += tokens[i].kind == TokenKind::kOpenBrace;
      braces -= tokens[i].kind == TokenKind::kCloseBrace;
    }
    if (!isSpread) {
      FormatLine words(wordsOf(begin, end), indent, isDeclaration);
      const bool isBlock = hasBlocks && tokens[end - 1].kind == TokenKind::kCloseBrace;
      if (!isBlock || words.width() <= kLineWidth) {
        for (size_t i = begin; i < end; ++i)
          if (tokens[i].kind == TokenKind::kComment)
            addComment(tokens[i], indent, std::exchange(followsBlankLine, false));
        return finish(end, std::move(words), followsBlankLine);
      }
    }
    return spread(begin, end, indent, isDeclaration);
  }

  // A statement whose blocks have lines of their own.
  size_t spread(size_t begin, size_t end, size_t indent, bool isDeclaration) {
    bool followsBlankLine = tokens[begin].followsBlankLine;
    for (size_t at = begin; at < end;) {
      size_t open = at;
      while (open < end && tokens[open].kind != TokenKind::kOpenBrace)
        ++open;
      const size_t past = std::min(open + 1, end);
      for (size_t i = at; i < past; ++i)
        if (tokens[i].kind == TokenKind::kComment)
          addComment(tokens[i], indent, std::exchange(followsBlankLine, false));
      at = finish(past, FormatLine(wordsOf(at, past), indent, isDeclaration && at == begin),
                  std::exchange(followsBlankLine, false));
      if (open < end)
        at = sequence(at, indent + kIndent);
    }
    return pastComment;
  }

  // Adds a line of words that end in front of the token `end`, and the comment that stands behind them.
  size_t finish(size_t end, FormatLine words, bool followsBlankLine) {
    const bool hasComment = tokens[end].kind == TokenKind::kComment && !tokens[end].startsLine;
    lines.push_back({std::move(words), hasComment ? commentText(tokens[end]) : std::string_view(), followsBlankLine});
    return pastComment = end + hasComment;
  }

  void addComment(const Token &comment, size_t indent) { addComment(comment, indent, comment.followsBlankLine); }
  void addComment(const Token &comment, size_t indent, bool followsBlankLine) {
    lines.push_back({FormatLine({}, indent, false), commentText(comment), followsBlankLine});
  }

  // As the parser ends a statement: in front of a token that begins a line, outside of brackets and braces, and not
  // behind a token that something must follow.
  size_t pastStatement(size_t begin) const {
    size_t open = 0, at = begin;
    TokenKind last = TokenKind::kEnd;
    for (; tokens[at].kind != TokenKind::kEnd; ++at) {
      const Token &token = tokens[at];
      if (token.kind == TokenKind::kComment)
        continue;
      if (at > begin && open == 0 &&
          ((token.startsLine && !continuesLine(last)) || token.kind == TokenKind::kCloseBrace))
        break;
      open += opens(token.kind);
      open -= closes(token.kind) && open > 0;
      last = token.kind;
    }
    while (tokens[at - 1].kind == TokenKind::kComment)
      --at;
    return at;
  }

  bool declares(size_t at, size_t indent) const {
    const bool isAssigned = tokens[at + 1].kind == TokenKind::kAssign || tokens[at + 1].kind == TokenKind::kPlusAssign;
    return indent == 0 && tokens[at].kind == TokenKind::kName && !isAssigned &&
           itemKindOf(tokenText(at)) != ItemKind::kStatement;
  }

  std::vector<Word> wordsOf(size_t begin, size_t end) const {
    std::vector<Word> words;
    for (size_t i = begin; i < end; ++i)
      if (tokens[i].kind != TokenKind::kComment)
        words.push_back({tokens[i].kind, tokenText(i)});
    return words;
  }

  void alignRuns() {
    for (size_t begin = 0, end = 0; begin < lines.size(); begin = end) {
      const auto belongs = [&](const Line &line) {
        return line.words.run() == lines[begin].words.run() && !line.followsBlankLine && !line.words.isEmpty() &&
               line.words.indentation() == lines[begin].words.indentation();
      };
      for (end = begin + 1; end < lines.size() && belongs(lines[end]);)
        ++end;
      if (lines[begin].words.isEmpty() || lines[begin].words.run() == FormatLine::Run::kNone)
        continue;
      size_t column = 0;
      for (size_t i = begin; i < end; ++i)
        column = std::max(column, lines[i].words.signEnd());
      for (size_t i = begin; i < end; ++i)
        lines[i].words.align(column);
    }
  }

  std::string_view tokenText(size_t at) const {
    return text.substr(tokens[at].begin, tokens[at].end - tokens[at].begin);
  }
  std::string_view commentText(const Token &comment) const {
    const std::string_view whole = text.substr(comment.begin, comment.end - comment.begin);
    return whole.substr(0, whole.find_last_not_of(" \t\r") + 1);
  }

  std::string_view text;
  std::vector<Token> tokens;
  std::vector<Line> lines;
  size_t pastComment = 0; // the token behind the last line's
};

} // namespace

std::optional<std::string> format(const SourceFile &file, Diagnostics &diagnostics) {
  const size_t before = diagnostics.errorCount();
  (void)parse(file, diagnostics);
  if (diagnostics.errorCount() != before)
    return std::nullopt;
  return Formatter(file, diagnostics).run();
}

} // namespace nsa::language
