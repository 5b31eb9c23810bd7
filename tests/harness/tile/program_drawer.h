// What is known while a program is drawn (drawn_program.h).
// Thread-safety: none.
#pragma once

#include "tests/harness/tile/drawn_formula.h"
#include "tests/harness/tile/drawn_program.h"

#include <string>
#include <vector>

namespace nsa::test::tile {

inline const AxisNames kRow = {"row"};
inline std::string number(int64_t value) { return std::to_string(value); }

class ProgramDrawer {
public:
  ProgramDrawer(uint64_t seed, const std::string &dtype, bool isGpu);
  DrawnProgram draw();

private:
  // The text
  void line(const std::string &text) { body += std::string(indent, ' ') + text + "\n"; }
  void open(const std::string &head);
  void close(const std::string &foot = "}");
  std::string fresh(const std::string &stem) { return stem + std::to_string(next++); }
  // Binds the value, and makes it known.
  Known let(const Known &value);

  // Tensors. Each of these declares one, fills it, and returns its name.
  std::string input(const std::string &shape, std::vector<int64_t> extents, bool isOptional = false);
  std::string list(int64_t count, int64_t below);
  // Ends of loops, one for each head, of which some are 0.
  std::string ends(int64_t most);
  std::string output(const std::string &shape, std::vector<int64_t> extents, bool isInteger = false);
  Known rowLoad();
  Known tileLoad(const std::string &place);
  Known columnLoad(const std::string &place);

  // Statements
  void functions();
  void rowStatements(int64_t count);
  void rowStore();
  void columnBlock();
  void insideColumns(const std::string &place, bool isLoop);
  void columnStore(const std::string &place);
  void productBlock();
  Known wholeRow(const Known &value, const std::string &axis, int64_t extent);
  void branchBlock();
  void conditionalBlock();
  std::string variable(const AxisNames &axes, double most);
  void softmaxBlock();
  void scalarLoop();
  void integers();
  void scatter();

  std::string header() const;

  FormulaDrawer drawer;
  DrawnProgram result;
  std::string dtype, body, tensors, functionTexts;
  size_t indent = 0;
  int next = 0;
  int64_t rowTile, columnTile, keyTile, rows, heads, columns, keys, width, outWidth, branches, stages;
  bool hasLongRows; // few rows of many columns, which a GPU lays across all threads
  bool isChunked;   // a part of the grid counts the blocks of columns
  bool hasStore = false;
};

} // namespace nsa::test::tile
