// Collects the diagnostics of MLIR as text instead of printing them, because errors of the compiler are values. It
// collects from its construction to its destruction.
// Thread-safety: belongs to one context; used by one thread.
#pragma once

#include "mlir/IR/Diagnostics.h"

#include <string>

namespace nsa::tile {

class DiagnosticText : public mlir::ScopedDiagnosticHandler {
public:
  explicit DiagnosticText(mlir::MLIRContext &context);
  ~DiagnosticText();

  // One line per error, "file:line:column: error: ...", with its notes below it. Warnings, remarks, and the operation
  // that MLIR prints below an error are left out.
  const std::string &text() const { return collected; }

private:
  mlir::MLIRContext &context;
  bool printedOperations; // the setting of the context before
  std::string collected;
};

} // namespace nsa::tile
