// Tile programs that tests write as text of the dialect. The compiler makes its modules from the tile language.
// Thread-safety: a parsed module belongs to the given MLIRContext and is used by one thread.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace nsa::test {

// Returns a verified module whose values have the names of the text, as values of a lowered program have theirs. For a
// wrong text it returns null, with the reason in `diagnostics`. `file` is the file name that errors show.
mlir::OwningOpRef<mlir::ModuleOp> parseTileText(llvm::StringRef text, llvm::StringRef file, mlir::MLIRContext &context,
                                                std::string &diagnostics);

} // namespace nsa::test
