// From a rendered template's text to a verified module whose values remember their names in the text, so that the
// emitted code can use them. Everything belongs to the given context; used by one thread.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace nsa::tile {

// The dialects that a tile program may use.
void registerTileProgramDialects(mlir::DialectRegistry &registry);

// A module with exactly one function, or null and the reason in `diagnostics`. `file` is how the text is called in
// them; rendering keeps lines, so line numbers are the template's.
mlir::OwningOpRef<mlir::ModuleOp> parseTileProgram(llvm::StringRef text, llvm::StringRef file,
                                                   mlir::MLIRContext &context, std::string &diagnostics);

// The value's name in the text: "row_max"; "lengths_2" for the third value of `%lengths:5`. Empty when it has none:
// it was made by a pass, or the text calls it by a number.
std::string sourceName(mlir::Value value);

} // namespace nsa::tile
