// What tile programs are made of. Their values remember the names that they have in the program, so that emitted code
// can use the names: a NameLoc for a single result or an argument, and for several results a FusedLoc whose metadata is
// the list of names. Thread-safety: pure functions.
#pragma once

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/Value.h"

#include <string>

namespace nsa::tile {

// The dialects that a tile program may use.
void registerTileProgramDialects(mlir::DialectRegistry &registry);

// The name of a value in the text of a tile program: "row_max", or "lengths_2" for the third value of `%lengths:5`.
// sourceName returns an empty string if a compiler pass created the value without a name, or if the name of the value
// in the text is a number, such as %0.
std::string sourceName(mlir::Value value);

} // namespace nsa::tile
