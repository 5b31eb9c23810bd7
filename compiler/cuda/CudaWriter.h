// Writes lines of CUDA C++ with their indentation. Indentation and line breaks of emitted text are decided only in
// CudaWriter.
// Thread-safety: a CudaWriter is used for one kernel, by one thread.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"

#include <string>

namespace nsa::cuda {

class CudaWriter {
public:
  static constexpr size_t kLineLength = 120;

  // The constructor of a Scope writes its argument `head` and an opening brace. The destructor writes a closing brace
  // and the constructor's argument `tail`. Lines inside of a Scope are indented by two more columns.
  class Scope {
  public:
    Scope(CudaWriter &writer, const llvm::Twine &head, llvm::StringRef tail = "");
    ~Scope();
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

    // Writes `} head {`, for example `} else {` between the two arms of a branch.
    void next(llvm::StringRef head);

  private:
    CudaWriter &writer;
    std::string tail;
  };

  // Writes `text`, which may hold several lines. Each line is indented.
  void line(const llvm::Twine &text);
  // Writes a statement. A statement that is too long for a line is broken before `?`, `:`, `&&` and `||`.
  void wrapped(llvm::StringRef text);
  // Writes a blank line, unless it would be the first line of the scope.
  void gap();

  // Returns whether `text` fits on a line with the current indentation.
  bool fits(llvm::StringRef text) const { return indent + text.size() <= kLineLength; }

  const std::string &text() const { return written; }

private:
  std::string written;
  size_t indent = 0;
  bool atStart = true; // no line of the current scope has been written
};

} // namespace nsa::cuda
