#include "runtime/engine/tune/tuning_result.h"

#include "runtime/base/half.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <span>

namespace nsa {

namespace {

constexpr double kRowFactor = 4; // no single row above so many times the tolerance
constexpr double kLseTolerance = 1e-3;
constexpr double kListShare = 1e-3; // of lists that may differ: ten times what near ties make

// Relative RMS against exact arithmetic. Two right results differ by less than the sum of two such errors; correct
// kernels measure near a third of the bound, so the bound itself serves for the difference.
double tolerance(DType dtype) {
  switch (dtype) {
  case DType::kBf16:
    return 5e-3;
  case DType::kF16:
    return 1e-3;
  default:
    return 1e-5;
  }
}

Status differs(const std::string &field, double value, double limit, size_t row) {
  char text[160];
  snprintf(text, sizeof text, "row %zu: %.3g is above %.3g", row, value, limit);
  return Status::error(ErrorCode::kInternal, field + " differs from the reference's: " + text);
}

Status notWritten(const std::string &field, size_t index) {
  return Status::error(ErrorCode::kInternal,
                       field + " holds NaN (or was not written) at element " + std::to_string(index));
}

std::string place(const TuningResult::Output &output, size_t index) {
  const auto columns = static_cast<size_t>(output.rowElements);
  return output.name + " holds " + std::to_string(static_cast<int64_t>(output.values[index])) + " in row " +
         std::to_string(index / columns) + " at " + std::to_string(index % columns);
}

Status compareRows(const TuningResult::Output &reference, const TuningResult::Output &result, double limit) {
  auto columns = static_cast<size_t>(reference.rowElements);
  double sumSquares = 0, sumErrors = 0, worst = 0;
  size_t worstRow = 0;
  for (size_t row = 0; row * columns < reference.values.size(); ++row) {
    double squares = 0, errors = 0;
    for (size_t i = row * columns; i < (row + 1) * columns; ++i) {
      if (std::isnan(result.values[i]))
        return notWritten(result.name, i);
      double error = static_cast<double>(result.values[i]) - reference.values[i];
      errors += error * error;
      squares += static_cast<double>(reference.values[i]) * reference.values[i];
    }
    sumSquares += squares;
    sumErrors += errors;
    // A row of zeros must be met exactly.
    double relative = errors == 0 ? 0 : std::sqrt(errors / squares);
    if (!(relative <= worst)) {
      worst = relative;
      worstRow = row;
    }
  }
  double total = sumErrors == 0 ? 0 : std::sqrt(sumErrors / sumSquares);
  if (!(total <= limit))
    return differs(result.name + " (relative RMS of all rows, with the worst)", total, limit, worstRow);
  if (!(worst <= kRowFactor * limit))
    return differs(result.name + " (relative RMS)", worst, kRowFactor * limit, worstRow);
  return Status::ok();
}

Status compareLse(const TuningResult::Output &reference, const TuningResult::Output &result) {
  for (size_t i = 0; i < reference.values.size(); ++i) {
    const float expected = reference.values[i], value = result.values[i];
    if (std::isnan(value))
      return notWritten(result.name, i);
    // Equal infinities have no difference to compute.
    if (value != expected && !(std::fabs(value - expected) <= kLseTolerance))
      return differs(result.name + " (absolute)", std::fabs(value - expected), kLseTolerance, i);
  }
  return Status::ok();
}

// As many distinct blocks as there are places, in ascending order and none behind the query's own, or all of them and
// then -1. No tie excuses anything else.
Status checkLists(const TuningResult::Output &lists) {
  const auto columns = static_cast<size_t>(lists.rowElements);
  assert(lists.ownBlocks.size() * columns == lists.values.size());
  for (size_t i = 0; i < lists.values.size(); ++i) {
    const auto own = static_cast<double>(lists.ownBlocks[i / columns]);
    const size_t column = i % columns;
    const double block = lists.values[i], before = column ? lists.values[i - 1] : -1;
    if (static_cast<double>(column) > own ? block != -1 : !(block > before && block <= own))
      return Status::error(ErrorCode::kInternal, place(lists, i) + ", which is no list of the " +
                                                     std::to_string(lists.ownBlocks[i / columns] + 1) +
                                                     " blocks that the query sees (or was not written)");
  }
  return Status::ok();
}

// Two right lists differ where the scores of two blocks nearly tie.
Status compareLists(const TuningResult::Output &reference, const TuningResult::Output &result) {
  NSA_RETURN_IF_ERROR(checkLists(result));
  auto columns = static_cast<size_t>(reference.rowElements);
  const size_t rows = reference.values.size() / columns;
  size_t different = 0, worstRow = 0;
  for (size_t row = 0; row < rows; ++row)
    for (size_t i = row * columns; i < (row + 1) * columns; ++i)
      if (result.values[i] != reference.values[i]) {
        ++different;
        worstRow = row;
        break;
      }
  const double share = rows ? static_cast<double>(different) / static_cast<double>(rows) : 0;
  if (share > kListShare)
    return differs(result.name + " (share of lists, with the last)", share, kListShare, worstRow);
  return Status::ok();
}

// Counts have no tolerance.
Status compareCounts(const TuningResult::Output &reference, const TuningResult::Output &result) {
  for (size_t i = 0; i < reference.values.size(); ++i) {
    if (result.values[i] < 0)
      return Status::error(ErrorCode::kInternal, place(result, i) + ", which counts nothing (or was not written)");
    if (result.values[i] != reference.values[i])
      return Status::error(ErrorCode::kInternal, place(result, i) + ", and the reference's " +
                                                     std::to_string(static_cast<int64_t>(reference.values[i])));
  }
  return Status::ok();
}

Status compareIntegers(const TuningResult::Output &reference, const TuningResult::Output &result) {
  for (size_t i = 0; i < reference.values.size(); ++i)
    if (result.values[i] != reference.values[i])
      return Status::error(ErrorCode::kInternal, place(result, i) + ", and the reference's " +
                                                     std::to_string(static_cast<int64_t>(reference.values[i])));
  return Status::ok();
}

// One loop for each type, which the compiler makes of vectors.
template <typename Element, typename ToFloat>
void convert(const std::byte *from, std::span<float> to, const ToFloat &toFloat) {
  for (size_t i = 0; i < to.size(); ++i) {
    Element element;
    std::memcpy(&element, from + i * sizeof element, sizeof element);
    to[i] = toFloat(element);
  }
}

} // namespace

void TuningResult::Output::addOwnBlocks(const Spec &spec, int64_t before, int64_t queries) {
  for (int64_t query = 0; query < queries; ++query)
    ownBlocks.insert(ownBlocks.end(), static_cast<size_t>(spec.kvHeads), (before + query) / spec.selBlock);
}

template <typename Visit> Status ComparedOutput::inBlocks(const Visit &visit) const {
  const int64_t width = dtypeBytes(dtype);
  for (int64_t first = 0; first < elements; first += kBlockElements)
    NSA_RETURN_IF_ERROR(visit(static_cast<std::byte *>(data) + first * width, static_cast<size_t>(first),
                              static_cast<size_t>(std::min(kBlockElements, elements - first) * width)));
  return Status::ok();
}

Status ComparedOutput::poison(Device &device) const {
  // All bits set is a NaN in bf16, fp16 and fp32. -1 is what the tail of a list holds: lists and counts get something
  // else, which neither may hold.
  std::vector<std::byte> block(static_cast<size_t>(std::min(elements, kBlockElements) * dtypeBytes(dtype)),
                               std::byte{0xff});
  constexpr int32_t kNoBlock = -2;
  if (dtype == DType::kI32)
    for (size_t at = 0; at < block.size(); at += sizeof kNoBlock)
      std::memcpy(block.data() + at, &kNoBlock, sizeof kNoBlock);
  return inBlocks([&](std::byte *at, size_t, size_t bytes) { return device.upload(at, block.data(), bytes); });
}

Result<TuningResult::Output> ComparedOutput::read(Device &device) const {
  std::vector<std::byte> block(static_cast<size_t>(std::min(elements, kBlockElements) * dtypeBytes(dtype)));
  std::vector<float> values(static_cast<size_t>(elements));
  NSA_RETURN_IF_ERROR(inBlocks([&](std::byte *at, size_t first, size_t bytes) -> Status {
    NSA_RETURN_IF_ERROR(device.download(block.data(), at, bytes));
    const std::span to = std::span(values).subspan(first, bytes / static_cast<size_t>(dtypeBytes(dtype)));
    if (dtype == DType::kBf16)
      convert<uint16_t>(block.data(), to, bf16ToFloat);
    else if (dtype == DType::kF16)
      convert<uint16_t>(block.data(), to, fp16ToFloat);
    else if (dtype == DType::kI32)
      convert<int32_t>(block.data(), to, [](int32_t value) { return static_cast<float>(value); });
    else
      std::memcpy(to.data(), block.data(), bytes);
    return Status::ok();
  }));
  return TuningResult::Output{name, kind, rowElements, std::move(values), {}};
}

Status compareResults(const TuningResult &reference, const TuningResult &result, DType dtype) {
  assert(reference.outputs.size() == result.outputs.size());
  for (size_t i = 0; i < reference.outputs.size(); ++i) {
    const TuningResult::Output &expected = reference.outputs[i], &output = result.outputs[i];
    assert(expected.values.size() == output.values.size());
    switch (expected.kind) {
    case TuningResult::Kind::kRows:
      NSA_RETURN_IF_ERROR(compareRows(expected, output, tolerance(dtype)));
      break;
    case TuningResult::Kind::kLse:
      NSA_RETURN_IF_ERROR(compareLse(expected, output));
      break;
    case TuningResult::Kind::kLists:
      NSA_RETURN_IF_ERROR(compareLists(expected, output));
      break;
    case TuningResult::Kind::kCounts:
      NSA_RETURN_IF_ERROR(compareCounts(expected, output));
      break;
    case TuningResult::Kind::kIntegers:
      NSA_RETURN_IF_ERROR(compareIntegers(expected, output));
      break;
    }
  }
  return Status::ok();
}

} // namespace nsa
