// An interpreter of the tile language, which reads syntax trees alone: neither the type checker nor the lowering of the
// compiler takes part, so that what a compiled program computes can be compared with what docs/language.md says.
// It runs all programs of a grid one after another, on tensors of this host. It knows the language without lists (top,
// insert, next), tensors of pages, and stores along outer axes. It throws std::runtime_error, with the place in the
// text, where it cannot go on; a program that the compiler refuses may run here.
// Thread-safety: a call belongs to one thread.
#pragma once

#include "tests/harness/tile/cell.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace nsa::test::tile {

// A tensor without gaps: the coordinates in their order, and behind them the elements of a row.
struct TileTensor {
  Element element = Element::kF32;
  std::vector<int64_t> shape;
  std::vector<Cell> cells; // a store changes them, and sets their errors
};

// One launch. A tensor that is not in `tensors` is absent.
struct TileCall {
  std::map<std::string, TileTensor> tensors;
  std::map<std::string, double> scalars;
  std::map<std::string, std::string> values;    // of what the program declares fixed, and dtype
  std::map<std::string, std::string> libraries; // texts by their names
  bool isGpu = false;
};

// What a correct program does not do.
struct TileFindings {
  std::vector<std::string> outside;    // loads and stores at places that a tensor does not have
  std::vector<std::string> collisions; // stores of two rows, or of two programs, to one place
  std::vector<std::string> reports;    // "CODE at PLACE", which a correct program may have
  int64_t programs = 0;                // that ran
  int64_t stored = 0;                  // elements
};

// Runs the program in the first configuration that its `require` lines admit.
TileFindings interpret(const std::string &text, TileCall &call);

} // namespace nsa::test::tile
