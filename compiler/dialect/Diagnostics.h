// Collects the diagnostics of MLIR as text instead of printing them, because the compiler returns errors as values. A
// DiagnosticText object collects diagnostics from its construction to its destruction.
// Thread-safety: a DiagnosticText object belongs to one MLIRContext and is used by one thread.
#pragma once

#include "mlir/IR/Diagnostics.h"

#include <string>

namespace nsa::tile {

class DiagnosticText : public mlir::ScopedDiagnosticHandler {
public:
  explicit DiagnosticText(mlir::MLIRContext &context);
  ~DiagnosticText();

  // The collected text has one line per error, "file:line:column: error: ...", with the notes of the error below it.
  // The collected text leaves out warnings, remarks, and the operation that MLIR prints below an error.
  const std::string &text() const { return collected; }

private:
  mlir::MLIRContext &context;
  bool printedOperations; // the setting of the context before
  std::string collected;
};

} // namespace nsa::tile
