// What a numeric test of any operator runs: a spec and the lengths of its sequences; a table of cases that every device
// must get right, and cases drawn from a seed.
// Thread-safety: values and pure functions.
#pragma once

#include "tools/support/operator_job.h"

#include <random>
#include <string>
#include <vector>

namespace nsa::test {

struct OperatorCase {
  std::string name;
  Spec spec;
  tools::SequenceLengths lengths;
  tools::Spacing spacing{};

  std::string text() const;
};

// Small enough for the reference, and with more blocks than are selected. Tests that have no geometry of their own
// share it, and so its kernels.
Spec smallSpec(Operator op, DType dtype);

// Every operator in every type, geometry that the contract names (docs/specification.md 1, 13), both layouts.
std::vector<OperatorCase> operatorTable();

struct OperatorDrawLimits {
  int64_t maxTokens = 300; // of one sequence
  double maxWork = 3e7;    // multiplications that the reference has to make for one call, roughly
};

// What kernels are compiled for, in the words of the whole forward, and the maxima of a plan: calls of all operators
// vary within it and share kernels.
struct Geometry {
  Spec spec;
  Maxima maxima;
};
Geometry drawGeometry(std::mt19937_64 &random, const OperatorDrawLimits &limits);

// A call that a plan for the geometry's maxima serves: window, forced blocks, scale, lengths and strides are drawn.
OperatorCase drawOperatorCase(const Geometry &geometry, Operator op, std::mt19937_64 &random,
                              const OperatorDrawLimits &limits);

} // namespace nsa::test
