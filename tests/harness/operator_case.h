// What a numeric test of any operator runs: a spec and the lengths of its sequences. It has a table of cases that every
// device must compute rightly, and draws further cases from a seed.
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
  std::vector<int32_t> keyOffsets{}; // of each sequence; empty: the call binds none

  std::string text() const;
  tools::OperatorInputs drawInputs(uint64_t seed) const;
};

// Changes biases of phi until no hidden value lies at the kink of relu, where the gradient is not determined. Tensors
// that the forward pass saved must not be bound yet.
void moveOffKink(tools::OperatorInputs &inputs);

// Binds the positions of the sequences' first keys.
void bindKeyOffsets(tools::OperatorInputs &inputs, const std::vector<int32_t> &offsets);

// A spec that is small enough for the reference and has more blocks than are selected. Tests without a geometry of
// their own share it, and so share its kernels.
Spec smallSpec(Operator op, DType dtype);

// The table: every operator in every type and in both layouts, with the geometries that the specification names
// (docs/specification.md 1, 13).
std::vector<OperatorCase> operatorTable();

struct OperatorDrawLimits {
  int64_t maxTokens = 300; // of one sequence
  double maxWork = 3e7;    // multiplications of the reference for one call, roughly
};

// A spec of the whole forward pass and the maxima of a plan. Calls of all operators vary within a geometry and share
// its kernels.
struct Geometry {
  Spec spec;
  Maxima maxima;
};
Geometry drawGeometry(std::mt19937_64 &random, const OperatorDrawLimits &limits);

// Draws a call that a plan for the geometry's maxima serves. Window, forced blocks, scale, lengths, strides and offsets
// of keys are drawn.
OperatorCase drawOperatorCase(const Geometry &geometry, Operator op, std::mt19937_64 &random,
                              const OperatorDrawLimits &limits);

} // namespace nsa::test
