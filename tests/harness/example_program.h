// The programs of docs/examples/programs: their texts, and calls of them with drawn tensors and what they compute, in
// fp64.
// Thread-safety: values.
#pragma once

#include "runtime/base/problem.h"

#include <cstdint>
#include <map>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace nsa::test {

// One call: a program, the element type, and the values of what the program declares `fixed` and of its sizes.
struct ExampleCase {
  std::string program;
  DType dtype;
  std::map<std::string, int64_t> sizes;

  std::string name() const; // for GoogleTest
  int64_t size(const std::string &of) const { return sizes.at(of); }
  // The values of nsa_program_create.
  std::map<std::string, std::string> values() const;
};

inline void PrintTo(const ExampleCase &each, std::ostream *stream) { *stream << each.name(); }

// A tensor in row-major order.
struct ExampleTensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  bool isOutput;
  std::vector<double> values; // of an input what the element type holds; of an output what the reference computes
  int64_t rowElements;        // of an output: the elements that the limit of one row is about
};

struct Example {
  ExampleCase of;
  std::vector<ExampleTensor> tensors;
  std::vector<std::pair<std::string, double>> scalars; // the scalars that no extent says

  const ExampleTensor &tensor(const std::string &name) const;
};

// The text of the program.
std::string exampleText(const std::string &program);
// All programs at several sizes, none of which is a multiple of a tile, in all types.
std::vector<ExampleCase> exampleCases();
// The first size of each program, in bf16.
std::vector<ExampleCase> briefExampleCases();
// Draws the inputs and computes the outputs.
Example drawExample(const ExampleCase &which, std::mt19937_64 &random);

} // namespace nsa::test
