// Parses the text of a rendered template into a verified module. Its values remember their names in the text, so the
// emitted code can use them.
// Thread-safety: everything belongs to the given context; used by one thread.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace nsa::tile {

// The dialects that a tile program may use.
void registerTileProgramDialects(mlir::DialectRegistry &registry);

// A module with exactly one function, or null with the reason in `diagnostics`. `file` names the text in errors.
// Rendering keeps lines, so line numbers are line numbers of the template.
mlir::OwningOpRef<mlir::ModuleOp> parseTileProgram(llvm::StringRef text, llvm::StringRef file,
                                                   mlir::MLIRContext &context, std::string &diagnostics);

// The name of a value in the text: "row_max", or "lengths_2" for the third value of `%lengths:5`. Empty if a pass made
// the value, or if the text names it by a number.
std::string sourceName(mlir::Value value);

} // namespace nsa::tile
