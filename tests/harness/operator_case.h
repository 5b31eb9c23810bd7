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

  std::string text() const;
};

// Every operator in every type, geometry that the contract names (spec.md 1, 13), both layouts.
std::vector<OperatorCase> operatorTable();

struct OperatorDrawLimits {
  int64_t maxTokens = 300; // of one sequence
  double maxWork = 3e7;    // multiplications that the reference has to make, roughly
};
OperatorCase drawOperatorCase(Operator op, std::mt19937_64 &random, const OperatorDrawLimits &limits);

} // namespace nsa::test
