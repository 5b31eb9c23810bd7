#include "compiler/cuda/CudaWriter.h"

#include "llvm/ADT/StringExtras.h"

namespace nsa::cuda {

static constexpr size_t kIndentColumns = 2;

CudaWriter::Scope::Scope(CudaWriter &writer, const llvm::Twine &head, llvm::StringRef tail)
    : writer(writer), tail(("}" + tail).str()) {
  writer.line(head + " {");
  writer.indent += kIndentColumns;
  writer.atStart = true;
}

void CudaWriter::Scope::next(llvm::StringRef head) {
  writer.indent -= kIndentColumns;
  writer.line("} " + head + " {");
  writer.indent += kIndentColumns;
  writer.atStart = true;
}

CudaWriter::Scope::~Scope() {
  writer.indent -= kIndentColumns;
  writer.line(tail);
}

void CudaWriter::line(const llvm::Twine &text) {
  const std::string lines = text.str();
  for (llvm::StringRef part : llvm::split(lines, '\n'))
    written.append(indent, ' ').append(part.begin(), part.end()).append("\n");
  atStart = false;
}

void CudaWriter::gap() {
  if (!atStart && !llvm::StringRef(written).ends_with("\n\n"))
    written.append("\n");
}

} // namespace nsa::cuda
