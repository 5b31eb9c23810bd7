// One line of a laid-out text: tokens, the blanks between them, and where it may be broken.
// Thread-safety: none.
#pragma once

#include "compiler/language/syntax/Token.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nsa::language {

// A token and its text.
struct Word {
  TokenKind kind;
  std::string_view text;
};

class FormatLine {
public:
  // `isDeclaration`: the first word is that of a declaration.
  FormatLine(std::span<const Word> words, size_t indent, bool isDeclaration);

  bool isEmpty() const { return pieces.empty(); }
  size_t indentation() const { return indent; }
  // Columns of the whole line, unbroken and without its comment.
  size_t width() const;

  // Lines whose signs may stand below each other.
  enum class Run : uint8_t { kNone, kLet, kAssignment };
  Run run() const { return runKind; }
  // The column behind the sign of an assignment, without what align has added.
  size_t signEnd() const;
  // Moves the sign to the right.
  void align(size_t end) { signPadding = end - signEnd(); }

  // With the end of a line. `comment` stands behind the last word.
  std::string toString(std::string_view comment) const;

private:
  struct Piece {
    std::string_view text;
    size_t blanks = 0;   // in front of it
    uint32_t depth = 0;  // brackets that are open behind it
    int breakLevel = -1; // behind it: the less the better; -1: never
  };

  // What words mean in their order: which sign a `-` or a `:` is.
  class Reader;

  void findRun(std::span<const Word> words);
  size_t blanksBefore(size_t piece) const { return pieces[piece].blanks + (piece == signPiece ? signPadding : 0); }
  size_t pastLine(size_t begin, size_t column) const;

  std::vector<Piece> pieces;
  size_t indent;
  size_t continuation; // columns of what is broken off
  Run runKind = Run::kNone;
  size_t signPiece = SIZE_MAX, signPadding = 0;
};

} // namespace nsa::language
