// Parses the text of a rendered template into a verified module. The values of a parsed module remember their names in
// the template, so that emitted code can use the names.
// Thread-safety: a parsed module belongs to the given MLIRContext and is used by one thread.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace nsa::tile {

// The dialects that a tile program may use.
void registerTileProgramDialects(mlir::DialectRegistry &registry);

// Returns a module with exactly one function, or null with the reason in `diagnostics`. `file` is the file name that
// errors show. The line numbers in errors are line numbers of `text`.
mlir::OwningOpRef<mlir::ModuleOp> parseTileProgram(llvm::StringRef text, llvm::StringRef file,
                                                   mlir::MLIRContext &context, std::string &diagnostics);

// The name of a value in the text of a tile program: "row_max", or "lengths_2" for the third value of `%lengths:5`.
// sourceName returns an empty string if a compiler pass created the value without a name, or if the name of the value
// in the text is a number, such as %0.
std::string sourceName(mlir::Value value);

} // namespace nsa::tile
