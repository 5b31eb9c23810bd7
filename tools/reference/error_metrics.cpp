#include "tools/reference/error_metrics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>

namespace nsa::reference {

Tolerance toleranceOf(DType dtype) {
  double rms = 0;
  switch (dtype) {
  case DType::kBf16:
    rms = 5e-3;
    break;
  case DType::kF16:
    rms = 1e-3;
    break;
  case DType::kF32:
    rms = 1e-5;
    break;
  case DType::kI32:
  case DType::kFp8E4M3:
  case DType::kFp8E5M2:
    assert(false && "no result of this type is compared with a tolerance");
  }
  return {.relativeRms = rms, .worstRow = 4 * rms, .lse = 1e-3};
}

Tolerance gradientToleranceOf(DType dtype) {
  Tolerance tolerance = toleranceOf(dtype);
  tolerance.relativeRms *= 2;
  tolerance.worstRow *= 2;
  return tolerance;
}

bool ErrorReport::judgedWithin(const Tolerance &tolerance) const {
  return notFinite == 0 && relativeRms <= tolerance.relativeRms && worstRow <= tolerance.worstRow &&
         lse <= tolerance.lse;
}

std::string ErrorReport::toString(const Tolerance &tolerance) const {
  char figures[320], lseFigure[64] = "";
  std::snprintf(figures, sizeof figures,
                "relative RMS %.3g (limit %.3g), worst row %.3g (limit %.3g) at row (%lld, %lld)", relativeRms,
                tolerance.relativeRms, worstRow, tolerance.worstRow, static_cast<long long>(worstQuery),
                static_cast<long long>(worstHead));
  if (lse != 0) // where one was compared
    std::snprintf(lseFigure, sizeof lseFigure, ", LSE %.3g (limit %.3g)", lse, tolerance.lse);
  const std::string text = std::string(figures) + lseFigure + ", not finite: " + std::to_string(notFinite);
  return unjudged == 0
             ? text
             : text +
                   (", rows and LSEs that cannot be judged, as the reference is not finite there: " +
                    std::to_string(unjudged)) +
                   ", the first at row (" + std::to_string(unjudgedQuery) + ", " + std::to_string(unjudgedHead) + ")";
}

static void countUnjudged(ErrorReport &report, int64_t query, int64_t head) {
  if (report.unjudged++ == 0) {
    report.unjudgedQuery = query;
    report.unjudgedHead = head;
  }
}

static bool isFinite(const double *row, int64_t columns) {
  return std::all_of(row, row + columns, [](double value) { return std::isfinite(value); });
}

// The mean of the squared norms of the rows that are finite.
static double meanSquare(std::span<const Sequence> sequences, int64_t heads, int64_t columns,
                         std::span<const double> expected) {
  double squares = 0;
  int64_t rows = 0;
  for (const Sequence &sequence : sequences)
    for (int64_t row = sequence.firstRow * heads; row < (sequence.firstRow + sequence.queries) * heads; ++row)
      if (const double *values = &expected[row * columns]; isFinite(values, columns)) {
        squares += std::inner_product(values, values + columns, values, 0.0);
        ++rows;
      }
  return rows == 0 ? 0 : squares / static_cast<double>(rows);
}

ErrorReport compareRows(std::span<const Sequence> sequences, int64_t heads, int64_t columns,
                        std::span<const double> expected, const TensorView &actual,
                        const std::optional<GradientRows> &gradient) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double leastSquare = gradient ? meanSquare(sequences, heads, columns, expected) : 0;
  ErrorReport report;
  double errorSquares = 0, referenceSquares = 0, shareSquares = 0;
  std::vector<double> values(static_cast<size_t>(columns));
  for (const Sequence &sequence : sequences) {
    for (int64_t query = 0; query < sequence.queries; ++query) {
      for (int64_t head = 0; head < heads; ++head) {
        const double *row = &expected[((sequence.firstRow + query) * heads + head) * columns];
        if (!isFinite(row, columns)) {
          countUnjudged(report, sequence.firstRow + query, head);
          continue;
        }
        double rowError = 0, rowReference = 0;
        actual.read(sequence.batch, sequence.queryBegin + query, head, values);
        for (int64_t c = 0; c < columns; ++c) {
          const double value = values[c];
          if (!std::isfinite(value))
            ++report.notFinite;
          rowError += (value - row[c]) * (value - row[c]);
          rowReference += row[c] * row[c];
        }
        errorSquares += rowError;
        referenceSquares += rowReference;
        if (gradient && !gradient->terms.empty()) {
          const double share = gradient->shareOfTerms * gradient->shareOfTerms *
                               gradient->terms[(sequence.firstRow + query) * heads + head];
          shareSquares += share;
          rowReference = std::max(rowReference, share);
        }
        // If all that counts is a reference row of zeros, no error at all is allowed.
        const double ratio = rowError == 0 ? 0 : std::sqrt(rowError / std::max(rowReference, leastSquare));
        if (!(ratio <= report.worstRow)) {
          report.worstRow = std::isnan(ratio) ? kInfinity : ratio;
          report.worstQuery = sequence.firstRow + query;
          report.worstHead = head;
        }
      }
    }
  }
  report.relativeRms = errorSquares == 0 ? 0 : std::sqrt(errorSquares / std::max(referenceSquares, shareSquares));
  if (std::isnan(report.relativeRms))
    report.relativeRms = kInfinity;
  return report;
}

void compareLse(std::span<const Sequence> sequences, int64_t heads, std::span<const double> expected,
                const TensorView &actual, ErrorReport &report) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const Sequence &sequence : sequences) {
    for (int64_t query = 0; query < sequence.queries; ++query) {
      for (int64_t head = 0; head < heads; ++head) {
        const double want = expected[(sequence.firstRow + query) * heads + head];
        const double got = actual.at(sequence.batch, sequence.queryBegin + query, head, 0);
        if (got == want)
          continue; // both may be -inf
        if (std::isnan(want) || want == kInfinity) {
          countUnjudged(report, sequence.firstRow + query, head);
          continue;
        }
        const double difference = std::fabs(got - want);
        if (!std::isfinite(difference))
          ++report.notFinite;
        if (!(difference <= report.lse))
          report.lse = std::isnan(difference) ? kInfinity : difference;
      }
    }
  }
}

ErrorReport compare(const Attention &a, const AttentionResult &reference, const TensorView &out,
                    const TensorView &lse) {
  ErrorReport report = compareRows(a.sequences, a.spec.queryHeads, a.spec.vDim, reference.out, out);
  if (lse.isGiven())
    compareLse(a.sequences, a.spec.queryHeads, reference.lse, lse, report);
  return report;
}

} // namespace nsa::reference
