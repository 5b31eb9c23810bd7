#include "compiler/language/syntax/Diagnostics.h"

#include <algorithm>
#include <utility>

namespace nsa::language {

namespace {

// A longer line is shown in part: one that fills a screen hides what is said about it.
constexpr size_t kMostShown = 160;

std::string_view nameOf(Severity severity) {
  switch (severity) {
  case Severity::kError:
    return "error";
  case Severity::kWarning:
    return "warning";
  case Severity::kRemark:
    return "remark";
  }
  return "";
}

// One line of a file and what stands below it. Columns of both count from 0, in characters.
class Snippet {
public:
  Snippet(const SourceFile &source, uint32_t number) : file(&source), line(number), text(source.line(number)) {
    for (const char c : text)
      if ((static_cast<unsigned char>(c) & 0xC0) != 0x80)
        ++characters;
  }

  // Puts waves below the part of the range that is in this line.
  void mark(const SourceRange &range) {
    const uint32_t lineBegin = file->lineBegin(line), lineEnd = lineBegin + static_cast<uint32_t>(text.size());
    if (range.file != file || range.end <= lineBegin || range.begin >= lineEnd)
      return;
    const size_t begin = columnOf(std::max(range.begin, lineBegin)), end = columnOf(std::min(range.end, lineEnd));
    widen(end);
    std::fill(below.begin() + static_cast<ptrdiff_t>(begin), below.begin() + static_cast<ptrdiff_t>(end), '~');
  }

  void setCaret(uint32_t offset) {
    caret = columnOf(std::min(offset, file->lineBegin(line) + static_cast<uint32_t>(text.size())));
    widen(caret + 1);
    below[caret] = '^';
  }

  // The line and what is below it. What cannot be shown is one blank or question mark wide, so that the caret stands
  // right.
  std::string toString() const {
    size_t first = 0;
    if (characters > kMostShown && caret > kMostShown / 2)
      first = std::min(caret - kMostShown / 2, characters - kMostShown);
    std::string shown, marks = first < below.size() ? below.substr(first, kMostShown) : "";
    size_t column = 0;
    for (size_t at = 0; at < text.size() && column < first + kMostShown; ++column) {
      const Utf8Character character = firstCharacter(text.substr(at));
      const size_t length = std::max<size_t>(character.length, 1);
      if (column >= first) {
        const bool isShown = character.length != 0 && !isInvisible(character.value);
        shown += isShown ? text.substr(at, length) : text[at] == '\t' ? " " : "?";
      }
      at += length;
    }
    if (characters > first + kMostShown)
      shown += " ..";
    if (first > 0) {
      shown.insert(0, ".. ");
      marks.insert(0, "   ");
    }
    marks.erase(marks.find_last_not_of(' ') + 1);
    return shown + "\n" + marks + "\n";
  }

private:
  size_t columnOf(uint32_t offset) const { return file->position(offset).column - 1; }
  void widen(size_t columns) {
    if (below.size() < columns)
      below.resize(columns, ' ');
  }

  const SourceFile *file;
  uint32_t line;
  std::string_view text;
  size_t characters = 0, caret = 0;
  std::string below;
};

void write(std::string &out, std::string_view kind, const SourceRange &range, std::string_view text,
           const std::vector<SourceRange> &marks) {
  if (!range.file) {
    out.append(kind).append(": ").append(text).append("\n");
    return;
  }
  const SourcePosition at = range.position();
  out.append(range.file->name()).append(":").append(std::to_string(at.line)).append(":");
  out.append(std::to_string(at.column)).append(": ").append(kind).append(": ").append(text).append("\n");
  Snippet snippet(*range.file, at.line);
  for (const SourceRange &mark : marks)
    snippet.mark(mark);
  snippet.mark(range);
  snippet.setCaret(range.begin);
  out += snippet.toString();
}

} // namespace

Diagnostic &Diagnostic::mark(const SourceRange &place) {
  marks.push_back(place);
  return *this;
}

Diagnostic &Diagnostic::note(const SourceRange &place, std::string noteText) {
  notes.push_back({place, std::move(noteText)});
  return *this;
}

Diagnostic &Diagnostic::hint(std::string newHint) {
  hintText = std::move(newHint);
  return *this;
}

std::string Diagnostic::toString() const {
  std::string out;
  write(out, nameOf(severity), range, text, marks);
  for (const Note &note : notes)
    write(out, "note", note.range, note.text, {});
  if (!hintText.empty())
    out.append("hint: ").append(hintText).append("\n");
  return out;
}

Diagnostic &Diagnostics::add(Severity severity, const SourceRange &range, std::string text) {
  bool isKept = !isFull();
  // A static loop and a function that is called several times give the same hint in each turn and call.
  if (severity != Severity::kError) {
    const auto isHint = [](const Diagnostic &message) { return message.severity != Severity::kError; };
    const auto isSame = [&](const Diagnostic &message) {
      return isHint(message) && message.range == range && message.text == text;
    };
    isKept &= std::ranges::none_of(messages, isSame) && std::ranges::count_if(messages, isHint) < kMostHints;
  }
  errors += severity == Severity::kError;
  Diagnostic message;
  message.severity = severity;
  message.range = range;
  message.text = std::move(text);
  if (!isKept)
    return leftOut = std::move(message);
  messages.push_back(std::move(message));
  return messages.back();
}

Diagnostic &Diagnostics::error(const SourceRange &range, std::string text) {
  return add(Severity::kError, range, std::move(text));
}

Diagnostic &Diagnostics::warning(const SourceRange &range, std::string text) {
  return add(Severity::kWarning, range, std::move(text));
}

Diagnostic &Diagnostics::remark(const SourceRange &range, std::string text) {
  return add(Severity::kRemark, range, std::move(text));
}

std::string Diagnostics::toString() const {
  std::string out;
  for (const Diagnostic &message : messages)
    out += message.toString();
  if (isFull())
    out.append("too many errors: what comes behind them was not looked at\n");
  return out;
}

std::string hintOfCheck(const std::string &file, const std::string &settings) {
  if (file.ends_with(".tile"))
    return "nsa check " + file + settings + " shows what is wrong";
  return "save the text as " + file + ".tile: nsa check " + file + ".tile" + settings + " shows what is wrong";
}

} // namespace nsa::language
