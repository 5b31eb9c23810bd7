// Small programs of the tile language, drawn from a seed: loads of rows and of lists of rows, formulas, masks,
// reductions along both axes, products, loops with variables, outer axes, optional tensors, functions and several
// stores, on sizes that are no multiples of tiles.
// Thread-safety: pure functions.
#pragma once

#include "tests/harness/tile/interpreted.h"

#include <set>
#include <string>

namespace nsa::test::tile {

struct DrawnProgram {
  std::string text;
  TileCall call; // all its tensors are filled, also the tensors that the program stores to
  std::set<std::string> outputs;
  std::map<std::string, std::string> libraries; // that its reader adds; the text imports `softmax`
};

// Draws a program with one configuration for the kind of device. `dtype`: bf16, fp16 or fp32.
DrawnProgram drawProgram(uint64_t seed, const std::string &dtype, bool isGpu);

} // namespace nsa::test::tile
