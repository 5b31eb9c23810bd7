#include "compiler/cuda/CudaWriter.h"

#include "llvm/ADT/StringExtras.h"

namespace nsa::cuda {

static constexpr size_t kIndentColumns = 2;
static constexpr size_t kContinuationColumns = 4;

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

void CudaWriter::wrapped(llvm::StringRef text) {
  std::string lines;
  size_t margin = indent;
  while (margin + text.size() > kLineLength) {
    // Breaks at the loosest operator first: `:` or `?` of the outer conditional, then logic.
    llvm::StringRef line = text.take_front(kLineLength - margin);
    size_t place = llvm::StringRef::npos;
    for (llvm::StringRef symbol : {" : ", " ? ", " || ", " && "})
      if (place == llvm::StringRef::npos)
        place = line.rfind(symbol);
    if (place == llvm::StringRef::npos)
      break;
    lines.append(text.take_front(place).str()).append("\n").append(kContinuationColumns, ' ');
    text = text.drop_front(place + 1);
    margin = indent + kContinuationColumns;
  }
  line(lines + text);
}

void CudaWriter::gap() {
  if (!atStart && !llvm::StringRef(written).ends_with("\n\n"))
    written.append("\n");
}

} // namespace nsa::cuda
