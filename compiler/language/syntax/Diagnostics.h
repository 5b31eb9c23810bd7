// What the compiler of the tile language has to say about a program: errors, warnings and remarks, each with the place,
// notes about other places, and a hint what to do. They are written as clang writes its own: the line, and a caret
// below. Thread-safety: none.
#pragma once

#include "compiler/language/syntax/Source.h"

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace nsa::language {

// A name of a program as messages show it.
inline std::string quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

enum class Severity : uint8_t { kError, kWarning, kRemark };

// One message. The caret stands at the begin of `range`, waves below the rest of it and below `marks`.
struct Diagnostic {
  struct Note {
    SourceRange range;
    std::string text;
  };

  Severity severity = Severity::kError;
  SourceRange range;
  std::string text;
  std::vector<SourceRange> marks; // operands and the like, in the same file
  std::vector<Note> notes;
  std::string hintText; // what the writer can do; empty: nothing is suggested

  // They are for the expression that reports: diagnostics.error(range, "..").note(other, "..").hint("..").
  Diagnostic &mark(const SourceRange &place);
  Diagnostic &note(const SourceRange &place, std::string noteText);
  // A note that belongs to no place.
  Diagnostic &note(std::string noteText) { return note(SourceRange{}, std::move(noteText)); }
  Diagnostic &hint(std::string newHint);

  // "file:line:col: error: text", the line, the caret, the notes and the hint; ends with the end of a line.
  std::string toString() const;
};

// The messages of one run, in the order in which they were reported.
class Diagnostics {
public:
  static constexpr size_t kMostErrors = 20;   // of more of them, most follow from the first ones
  static constexpr ptrdiff_t kMostHints = 20; // warnings and remarks, of which each is kept once

  explicit Diagnostics(size_t mostErrors = kMostErrors) : mostErrors(mostErrors) {}

  // The reference serves for adding to the message, and stays valid. What comes behind the last error that is kept is
  // left out.
  Diagnostic &error(const SourceRange &range, std::string text);
  Diagnostic &warning(const SourceRange &range, std::string text);
  Diagnostic &remark(const SourceRange &range, std::string text);

  bool hasErrors() const { return errors != 0; }
  size_t errorCount() const { return errors; }
  // Whether no further error is kept, so that to go on is of no use.
  bool isFull() const { return errors >= mostErrors; }
  const std::deque<Diagnostic> &list() const { return messages; }

  // All messages, and a last line that says so where no further error is kept.
  std::string toString() const;

private:
  Diagnostic &add(Severity severity, const SourceRange &range, std::string text);

  size_t mostErrors;
  size_t errors = 0;
  std::deque<Diagnostic> messages;
  Diagnostic leftOut;
};

// Says how the errors of a program are seen again. A program whose name does not end with `.tile` was given as a text.
// `settings` are options that give its values, each with a space before it.
std::string hintOfCheck(const std::string &file, const std::string &settings = {});

} // namespace nsa::language
