// What a numeric test of attention runs: shapes, lengths, and how the tensors lie in memory. It has a table of cases
// that every device must compute rightly, and draws further cases from a seed.
// Thread-safety: values and pure functions.
#pragma once

#include "runtime/base/problem.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace nsa::test {

enum class Placement {
  kTimeMajor, // [batch, time, head, dim], contiguous
  kHeadMajor, // [batch, head, time, dim], contiguous
  kGaps,      // time-major, with unused elements behind every row, head and sequence, and an odd base
};

struct Lengths {
  int64_t queries = 0; // T_q
  int64_t keys = 0;    // T
};

struct AttentionCase {
  std::string name;
  Operator op = Operator::kWindow;
  DType dtype = DType::kF32;
  Layout layout = Layout::kDense;
  int32_t kvHeads = 1;
  int32_t group = 1;
  int32_t qkDim = 16;
  int32_t vDim = 16;
  int32_t window = 16;
  float scale = 0;
  std::vector<Lengths> sequences; // equal in the dense layout
  Placement placement = Placement::kTimeMajor;
  int64_t unusedRows = 0; // packed layout: rows behind the last sequence

  Spec spec() const;
  Maxima maxima() const;
  int64_t queryRows() const; // of all sequences
  int64_t keyRows() const;
  double pairs() const; // attended pairs (query, key) for each head
  std::string text() const;
};

// A typical case, for tests in which the values do not matter: several heads of a group, and a window that is shorter
// than the sequence.
AttentionCase plainCase(std::string name);

// The table: every value that the specification names occurs in at least one case (docs/specification.md 1, 2, 13).
std::vector<AttentionCase> attentionTable();

struct DrawLimits {
  int64_t maxTokens = 300;  // of one sequence
  double maxPairWork = 4e7; // pairs * heads * (qk_dim + v_dim), which the reference has to compute
};
AttentionCase drawAttentionCase(std::mt19937_64 &random, const DrawLimits &limits);

// The longest case: NSA_TEST_MAX_TOKENS if it is set, or else `otherwise`. Tools that run a hundred times slower set
// it.
int64_t maxTokens(int64_t otherwise);
// The reason with which a longer test is skipped. tests/gpu/run-gpu-tests knows the text.
inline constexpr const char *kTooManyTokens =
    "left out by NSA_TEST_MAX_TOKENS: gigabytes of device memory, and the tool "
    "shadows each byte";

} // namespace nsa::test
