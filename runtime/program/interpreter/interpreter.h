// An interpreter of the tile language, which reads syntax trees alone: neither the type checker nor the lowering of the
// compiler takes part, so that what a compiled program computes can be compared with what docs/language.md says. It
// also finds what a program does that it must not do: loads and stores outside of a tensor, two rows that are stored to
// one place, masks that leave out something where their `when` does not hold, and integers that are divided by 0. It
// runs all programs of a grid one after another, on tensors of this host. It knows the language without lists (top,
// insert, next), tensors of pages, and stores along outer axes. A program that the compiler refuses may run here.
// Thread-safety: a call belongs to one thread.
#pragma once

#include "compiler/language/syntax/Syntax.h"
#include "runtime/base/status.h"
#include "runtime/program/interpreter/cell.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace nsa::interpreter {

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
  std::map<std::string, std::string> values; // of what the program declares fixed, and dtype
  // The configuration. Empty: the first one that the `require` lines admit.
  std::map<std::string, int64_t> choices = {};
  bool isGpu = false;
};

// What a correct program does not do, at one place of its text.
struct Fault {
  enum class Kind : uint8_t { kOutside, kStoredTwice, kBrokenWhen, kDividedByZero };

  Kind kind;
  std::string message; // "file:line:col: error: ..", the line, a caret and notes, as nsa check writes it
  int64_t count;       // of the elements; the message names the first one
};

struct TileFindings {
  std::vector<Fault> faults; // in the order in which they were met
  // Codes and places that the program reported, which a correct program may do.
  std::vector<std::pair<int64_t, int64_t>> reports;
  int64_t programs = 0; // that ran
  int64_t stored = 0;   // elements
};

// Runs a program. `trees` are the kernel's file and the libraries that it imports, directly or not. The error has the
// place in the text where the interpreter cannot go on.
Result<TileFindings> interpret(const std::vector<const language::SyntaxTree *> &trees, TileCall &call);

} // namespace nsa::interpreter
