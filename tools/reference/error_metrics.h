// How far a result is from the reference, and how far it may be (docs/specification.md 11).
// A value that is not finite where the reference is makes every figure infinite: no comparison below lets a NaN pass.
// Thread-safety: pure functions.
#pragma once

#include "tools/reference/attention.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace nsa::reference {

struct Tolerance {
  double relativeRms; // ||out - ref|| / ||ref||
  double worstRow;    // the same of any single row (one query, one head): four times that
  double lse;         // absolute
};

Tolerance toleranceOf(DType dtype);
// Of gradients. The limits are twice the limits of results.
Tolerance gradientToleranceOf(DType dtype);

// The error of a row of a gradient is relative to the norm of the row, or, if this is larger, to the root mean square
// of the norms of all rows, or to a fiftieth of the row's terms: a gradient may be a small difference of large
// products, and 0 but for rounding. docs/specification.md 11 has the rule.
struct GradientRows {
  std::span<const double> terms{}; // of each row, the sum of the squared norms of what it is the sum of; or empty
  double shareOfTerms = 0.02;      // a fiftieth
};

// To the bit: -0 is no zero.
inline bool isZero(double value) { return value == 0 && !std::signbit(value); }

struct ErrorReport {
  double relativeRms = 0;
  double worstRow = 0;
  int64_t worstQuery = 0; // row of the result
  int64_t worstHead = 0;
  double lse = 0; // largest absolute difference; 0 when no LSE was compared
  int64_t notFinite = 0;
  // Rows, and log-sum-exps, where the reference itself is not finite, because of what the inputs hold: no figure says
  // anything of them.
  int64_t unjudged = 0;
  int64_t unjudgedQuery = 0, unjudgedHead = 0; // of the first one

  bool within(const Tolerance &tolerance) const { return unjudged == 0 && judgedWithin(tolerance); }
  // The other rows.
  bool judgedWithin(const Tolerance &tolerance) const;
  std::string toString(const Tolerance &tolerance) const;
};

// Compares a tensor [.., heads, columns] with [rows, heads, columns] in fp64, at all queries of the sequences. A subset
// of the rows is singleRows(sequences, rows); compressed rows are compressedRows(sequences, spec). Leaves `lse` alone.
ErrorReport compareRows(std::span<const Sequence> sequences, int64_t heads, int64_t columns,
                        std::span<const double> expected, const TensorView &actual,
                        const std::optional<GradientRows> &gradient = std::nullopt);

// Compares log-sum-exps [.., heads] with [rows, heads] and adds what it finds to the report; -inf equals only itself.
void compareLse(std::span<const Sequence> sequences, int64_t heads, std::span<const double> expected,
                const TensorView &actual, ErrorReport &report);

// Both, of an attention operator: `out`, and `lse` unless it is not given.
ErrorReport compare(const Attention &attention, const AttentionResult &reference, const TensorView &out,
                    const TensorView &lse);

} // namespace nsa::reference
