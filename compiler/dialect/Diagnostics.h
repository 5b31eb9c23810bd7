// Collects what MLIR reports while it stands, as text, instead of printing it: the compiler's errors are values.
// Belongs to one context; used by one thread.
#pragma once

#include "mlir/IR/Diagnostics.h"

#include <string>

namespace nsa::tile {

class DiagnosticText : public mlir::ScopedDiagnosticHandler {
public:
  explicit DiagnosticText(mlir::MLIRContext &context);
  ~DiagnosticText();

  // "file:line:column: error: ..." a line each, notes below their error. Warnings, remarks, and the operation that MLIR
  // prints below an error, are left out.
  const std::string &text() const { return collected; }

private:
  mlir::MLIRContext &context;
  bool printedOperations; // the context's setting before
  std::string collected;
};

} // namespace nsa::tile
