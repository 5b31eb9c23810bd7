#include "runtime/program/interpreter/cell.h"

#include "runtime/base/half.h"

#include <algorithm>
#include <cmath>

namespace nsa::interpreter {

namespace {

// Of f32: half a unit of the last place, and the smallest normal number, below which a kernel may have 0.
constexpr double kHalfUnit = 0x1p-24, kSmallest = 0x1p-126;
// Of the functions that a kernel approximates, relative to the result.
constexpr double kFunctionError = 0x1p-21;

bool isTyped(Element element) { return !isUntyped(element); }

// The cell of an operation whose exact result is `exact`, off by at most `error` in front of the last rounding.
Cell finished(Element element, double exact, double error) {
  const double value = roundedTo(element, exact);
  if (!std::isfinite(value) || element != Element::kF32)
    return {value, std::isfinite(value) || error == kInfinity ? error : 0};
  if (error > 0)
    error += 2 * kHalfUnit * (std::abs(value) + error);
  if (value != 0 && std::abs(value) < kSmallest)
    error += kSmallest;
  return {value, error};
}

Cell compared(Operation op, Cell a, Cell b) {
  bool holds = false;
  switch (op) {
  case Operation::kEqual:
    holds = a.value == b.value;
    break;
  case Operation::kUnequal:
    holds = a.value != b.value;
    break;
  case Operation::kLess:
    holds = a.value < b.value;
    break;
  case Operation::kLessEqual:
    holds = a.value <= b.value;
    break;
  case Operation::kGreater:
    holds = a.value > b.value;
    break;
  default:
    holds = a.value >= b.value;
    break;
  }
  const double error = a.error + b.error;
  const bool isOpen = error > 0 && !(std::abs(a.value - b.value) > error);
  return {holds ? 1.0 : 0.0, isOpen ? 1.0 : 0.0};
}

Cell logical(Operation op, Cell a, Cell b) {
  const bool deciding = op == Operation::kOr; // the value of one side that decides alone
  for (const Cell &side : {a, b})
    if (side.error == 0 && side.isTrue() == deciding)
      return {deciding ? 1.0 : 0.0, 0};
  const bool holds = deciding ? a.isTrue() || b.isTrue() : a.isTrue() && b.isTrue();
  return {holds ? 1.0 : 0.0, std::max(a.error, b.error)};
}

Cell integers(Operation op, Element element, Cell a, Cell b) {
  const auto x = static_cast<int64_t>(a.value), y = static_cast<int64_t>(b.value);
  int64_t result = 0;
  switch (op) {
  case Operation::kAdd:
    result = x + y;
    break;
  case Operation::kSubtract:
    result = x - y;
    break;
  case Operation::kMultiply:
    result = static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
    break;
  case Operation::kDivide:
    result = y == 0 ? x : x / y;
    break;
  case Operation::kRemainder:
    result = y == 0 ? 0 : x % y;
    break;
  case Operation::kNegate:
    result = -x;
    break;
  case Operation::kMin:
    result = std::min(x, y);
    break;
  case Operation::kMax:
    result = std::max(x, y);
    break;
  default:
    result = std::abs(x);
    break;
  }
  const bool isOpen = a.error > 0 || b.error > 0;
  return {roundedTo(element, static_cast<double>(result)), isOpen ? kInfinity : 0};
}

// The result in double, and its error from the errors of its operands.
Cell exactly(Operation op, Cell a, Cell b, Cell c) {
  switch (op) {
  case Operation::kAdd:
    return {a.value + b.value, a.error + b.error};
  case Operation::kSubtract:
    return {a.value - b.value, a.error + b.error};
  case Operation::kMultiply:
    return {a.value * b.value, errorOfProduct(a, b)};
  case Operation::kDivide: {
    const double value = a.value / b.value;
    if (b.error > 0 && std::abs(b.value) <= b.error)
      return {value, kInfinity};
    const double error = (a.error + std::abs(value) * b.error) / (std::abs(b.value) - b.error);
    return {value, (std::isfinite(value) ? error : 0) + std::abs(value) * kFunctionError};
  }
  case Operation::kNegate:
    return {-a.value, a.error};
  case Operation::kAbs:
    return {std::abs(a.value), a.error};
  case Operation::kMin:
    return {std::fmin(a.value, b.value), std::max(a.error, b.error)};
  case Operation::kMax:
    return {std::fmax(a.value, b.value), std::max(a.error, b.error)};
  case Operation::kFma: {
    const auto fused = std::fma(static_cast<float>(a.value), static_cast<float>(b.value), static_cast<float>(c.value));
    return {static_cast<double>(fused), errorOfProduct(a, b) + c.error};
  }
  case Operation::kExp2: {
    const double value = std::exp2(a.value);
    // In the form value * expm1(..) a result of 0 and a wide error would be 0 * inf.
    return {value, std::exp2(a.value + a.error) - value + value * kFunctionError};
  }
  case Operation::kLog2: {
    const double value = std::log2(a.value);
    if (a.error > 0 && a.value <= a.error)
      return {value, kInfinity};
    return {value, -std::log2(1 - a.error / a.value) + kFunctionError * std::max(1.0, std::abs(value))};
  }
  case Operation::kSqrt: {
    const double value = std::sqrt(a.value);
    if (a.error > 0 && a.value < a.error)
      return {value, kInfinity};
    return {value, std::sqrt(a.value + a.error) - std::sqrt(a.value - a.error) + value * kFunctionError};
  }
  case Operation::kErf:
    return {std::erf(a.value), 1.13 * a.error + kFunctionError};
  default: {
    const double low = std::nearbyint(a.value - a.error), high = std::nearbyint(a.value + a.error);
    return {std::nearbyint(a.value), high - low};
  }
  }
}

} // namespace

Element elementOf(DType dtype) {
  switch (dtype) {
  case DType::kBf16:
    return Element::kBf16;
  case DType::kF16:
    return Element::kF16;
  case DType::kI32:
    return Element::kI32;
  default:
    return Element::kF32;
  }
}

double roundedTo(Element element, double value) {
  const auto single = static_cast<float>(value);
  switch (element) {
  case Element::kI32:
    return static_cast<double>(static_cast<int32_t>(static_cast<uint32_t>(static_cast<int64_t>(value))));
  case Element::kF32:
    return static_cast<double>(single);
  case Element::kBf16:
    return static_cast<double>(bf16ToFloat(floatToBf16(single)));
  case Element::kF16:
    return static_cast<double>(fp16ToFloat(floatToFp16(single)));
  default:
    return value;
  }
}

Cell roundedTo(Element element, Cell cell) {
  const double value = roundedTo(element, cell.value);
  if (cell.error == 0 || cell.isUnknown() || !std::isfinite(cell.value))
    return {value, cell.error};
  const double low = roundedTo(element, cell.value - cell.error), high = roundedTo(element, cell.value + cell.error);
  if (!std::isfinite(value)) // all that rounds to infinity is the same
    return {value, low == high ? 0 : kInfinity};
  return {value, std::max(value - low, high - value)};
}

Cell castTo(Element element, Cell cell) {
  if (isFloat(element))
    return roundedTo(element, cell);
  const double value = std::trunc(cell.value);
  if (!(std::abs(value) < 0x1p31))
    return {0, kInfinity}; // no integer of the type
  const bool isOpen = std::trunc(cell.value - cell.error) != value || std::trunc(cell.value + cell.error) != value;
  return {roundedTo(element, value), isOpen ? kInfinity : 0};
}

Cell compute(Operation op, Element element, Cell a, Cell b, Cell c) {
  if (isComparison(op))
    return compared(op, a, b);
  if (op == Operation::kAnd || op == Operation::kOr)
    return logical(op, a, b);
  if (op == Operation::kNot)
    return {a.isTrue() ? 0.0 : 1.0, a.error};
  if (!isFloat(element))
    return integers(op, element, a, b);
  const Cell exact = exactly(op, a, b, c);
  if (a.isUnknown() || b.isUnknown() || c.isUnknown())
    return {roundedTo(element, exact.value), kInfinity};
  const bool isFinite = std::isfinite(a.value) && std::isfinite(b.value) && std::isfinite(c.value);
  return finished(element, exact.value, isFinite && isTyped(element) ? exact.error : exact.isUnknown() ? kInfinity : 0);
}

Cell fusable(Cell product, Cell a, Cell b) {
  const double rounding = std::abs(a.value * b.value - product.value);
  return std::isfinite(rounding) ? Cell{product.value, std::max(product.error, rounding)} : product;
}

Cell select(Cell condition, Cell ifTrue, Cell ifFalse) {
  const Cell chosen = condition.isTrue() ? ifTrue : ifFalse;
  if (condition.error == 0)
    return chosen;
  const double distance = std::abs(ifTrue.value - ifFalse.value);
  if (ifTrue.value == ifFalse.value)
    return {chosen.value, std::max(ifTrue.error, ifFalse.error)};
  return {chosen.value, std::isfinite(distance) ? distance + std::max(ifTrue.error, ifFalse.error) : kInfinity};
}

double errorOfProduct(Cell a, Cell b) {
  if (a.isUnknown() || b.isUnknown())
    return kInfinity;
  const auto mayVanish = [](Cell cell) { return cell.error > 0 && std::abs(cell.value) <= cell.error; };
  if (!std::isfinite(a.value) || !std::isfinite(b.value)) // the sign of an infinite product, or NaN for 0
    return mayVanish(a) || mayVanish(b) ? kInfinity : 0;
  return std::abs(a.value) * b.error + std::abs(b.value) * a.error + a.error * b.error;
}

Cell sumOf(double exact, double magnitude, double error, int64_t terms) {
  if (terms <= 1 || !std::isfinite(exact))
    return {roundedTo(Element::kF32, exact), error};
  // A sum of numbers that f32 holds is exact if all partial sums are, which their magnitude cannot tell.
  const double own = static_cast<double>(terms) * kHalfUnit * (magnitude + error);
  return finished(Element::kF32, exact, error + own);
}

bool mayBe(Element element, Cell expected, double actual) {
  if (expected.isUnknown())
    return true;
  if (std::isnan(expected.value) || std::isnan(actual))
    return std::isnan(expected.value) && std::isnan(actual);
  if (!std::isfinite(expected.value))
    return actual == expected.value;
  return actual >= roundedTo(element, expected.value - expected.error) &&
         actual <= roundedTo(element, expected.value + expected.error);
}

} // namespace nsa::interpreter
