#include "compiler/dialect/Diagnostics.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace nsa::tile {

static void append(std::string &text, const Diagnostic &diagnostic, llvm::StringRef severity) {
  llvm::raw_string_ostream stream(text);
  if (auto place = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>())
    stream << place.getFilename().getValue() << ":" << place.getLine() << ":" << place.getColumn() << ": ";
  stream << severity << ": " << diagnostic << "\n";
}

DiagnosticText::DiagnosticText(MLIRContext &context)
    : ScopedDiagnosticHandler(&context), context(context), printedOperations(context.shouldPrintOpOnDiagnostic()) {
  context.printOpOnDiagnostic(false);
  setHandler([this](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return success();
    append(collected, diagnostic, "error");
    for (const Diagnostic &note : diagnostic.getNotes())
      append(collected, note, "note");
    return success();
  });
}

DiagnosticText::~DiagnosticText() { context.printOpOnDiagnostic(printedOperations); }

} // namespace nsa::tile
