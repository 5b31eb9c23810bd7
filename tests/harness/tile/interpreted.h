// A text of the tile language as tests run it in the interpreter.
// Thread-safety: a call belongs to one thread.
#pragma once

#include "runtime/program/interpreter/interpreter.h"

#include <map>
#include <string>

namespace nsa::test::tile {

using namespace nsa::interpreter; // NOLINT(google-build-using-namespace): drawn programs are made of its types

// Runs the program. `libraries` are texts by their names. Throws std::runtime_error where the interpreter cannot go on.
TileFindings interpret(const std::string &text, TileCall &call,
                       const std::map<std::string, std::string> &libraries = {});

} // namespace nsa::test::tile
