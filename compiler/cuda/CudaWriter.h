// Lines of CUDA C++ with their indentation. The one place that knows how emitted text is laid out.
// Owned by one emission; not shared between threads.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"

#include <string>

namespace nsa::cuda {

class CudaWriter {
public:
  static constexpr size_t kLineLength = 120;

  // Writes `head {`, and `}tail` when it goes out of scope; what is written meanwhile stands two columns further in.
  class Scope {
  public:
    Scope(CudaWriter &writer, const llvm::Twine &head, llvm::StringRef tail = "");
    ~Scope();
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

    // `} head {`: from one arm to the other.
    void next(llvm::StringRef head);

  private:
    CudaWriter &writer;
    std::string tail;
  };

  // `text` may hold line breaks; each of its lines is indented.
  void line(const llvm::Twine &text);
  // A statement that is broken before `?`, `:`, `&&` and `||` where it would be too long.
  void wrapped(llvm::StringRef text);
  // A blank line, unless nothing stands above it in the scope.
  void gap();

  // Whether `text` fits on a line here.
  bool fits(llvm::StringRef text) const { return indent + text.size() <= kLineLength; }

  const std::string &text() const { return written; }

private:
  std::string written;
  size_t indent = 0;
  bool atStart = true; // of a scope
};

} // namespace nsa::cuda
