// Cuts a text of the tile language into tokens, one at a time.
// Thread-safety: none.
#pragma once

#include "compiler/language/syntax/Diagnostics.h"
#include "compiler/language/syntax/Token.h"

namespace nsa::language {

class Lexer {
public:
  enum class Comments : uint8_t { kSkip, kKeep };

  // The text is one that checkText has passed.
  Lexer(const SourceFile &file, Diagnostics &diagnostics, Comments comments = Comments::kSkip)
      : file(&file), diagnostics(&diagnostics), comments(comments), text(file.text()) {}

  // The next token; kEnd again and again at the end. What is no token is reported and becomes kError.
  Token next();
  // The rest of the text is not looked at.
  void stop() { at = text.size(); }

private:
  void skipSpace(Token &token);
  TokenKind scan();
  TokenKind scanNumber();
  TokenKind scanUnexpected();
  TokenKind scanComment();
  size_t skipDigits();
  // Of one line the first error is reported: it may be the reason of the others.
  Diagnostic &error(size_t begin, size_t end, std::string what);

  const SourceFile *file;
  Diagnostics *diagnostics;
  Comments comments;
  std::string_view text;
  size_t at = 0;
  bool hasRefusedHeader = false;
  bool hasErrorInLine = false;
  Diagnostic unreported;
};

} // namespace nsa::language
