// From a kernel in the tile language to a module of the tile dialect.
// Thread-safety: a module belongs to the given MLIRContext and is used by one thread.
#pragma once

#include "compiler/language/types/Types.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace nsa::language {

// A module with exactly one function, whose values bear the names of the program; null after an error. The trees and
// `given` must outlive the call only.
mlir::OwningOpRef<mlir::ModuleOp> lowerTileProgram(const SyntaxTree &kernel, const LibraryResolver &libraries,
                                                   const GivenValues &given, mlir::MLIRContext &context,
                                                   Diagnostics &diagnostics);

} // namespace nsa::language
