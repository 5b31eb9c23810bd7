// One number of the tile language as the interpreter of the tests computes it: a value, and how far a correct kernel
// may be from it. An operation that a kernel rounds as IEEE 754 says has no error of its own. Sums in another order and
// functions such as exp2 have one, and errors are carried through all that is computed of them.
// Thread-safety: pure functions.
#pragma once

#include "runtime/model/enums.h"

#include <cstdint>
#include <limits>

namespace nsa::interpreter {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// kInteger, kReal and kTruth are constants without a type; kWord is a constant such as bf16.
enum class Element : uint8_t { kWord, kInteger, kReal, kTruth, kBool, kI32, kI64, kF32, kF64, kBf16, kF16 };

inline bool isUntyped(Element element) { return element <= Element::kTruth; }
inline bool isStorage(Element element) { return element == Element::kBf16 || element == Element::kF16; }
inline bool isFloat(Element element) { return element >= Element::kF32 || element == Element::kReal; }
inline bool isBool(Element element) { return element == Element::kBool || element == Element::kTruth; }
Element elementOf(DType dtype);

// A kernel's number lies in [value - error, value + error]. Of a bool an error above 0 says that a kernel may find the
// opposite. An infinite error says that nothing is known.
struct Cell {
  double value = 0, error = 0;

  bool isTrue() const { return value != 0; }
  bool isUnknown() const { return error == kInfinity; }
};

enum class Operation : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kRemainder,
  kEqual,
  kUnequal,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kAnd,
  kOr,
  kNegate,
  kNot,
  kMin,
  kMax,
  kFma,
  kAbs,
  kExp2,
  kLog2,
  kSqrt,
  kErf,
  kRoundEven,
};

inline bool isComparison(Operation op) { return op >= Operation::kEqual && op <= Operation::kGreaterEqual; }

// The nearest value of the type. An i32 wraps around.
double roundedTo(Element element, double value);
// What a kernel rounds.
Cell roundedTo(Element element, Cell cell);
// What `as` makes of it: a number with a fraction loses it on the way to an integer.
Cell castTo(Element element, Cell cell);
// An operation of numbers of the type, of which a comparison makes a bool. Integers are divided by 1 where the divisor
// is 0.
Cell compute(Operation op, Element element, Cell a, Cell b = {}, Cell c = {});
// A product of f32 that a compiler may fuse with the sum that takes it, so that it is not rounded on its way there.
Cell fusable(Cell product, Cell a, Cell b);
Cell select(Cell condition, Cell ifTrue, Cell ifFalse);
// How far a product may be from the product of the values. It is never NaN: a product of an unknown number is unknown,
// also a product with 0, and so is a product of infinity and a number that may be 0.
double errorOfProduct(Cell a, Cell b);
// The sum of numbers in any order: `terms` were added, of which `magnitude` is the sum of their absolute values.
Cell sumOf(double exact, double magnitude, double error, int64_t terms);
// Whether a kernel that computed `actual`, an element of the type, may have computed the cell.
bool mayBe(Element element, Cell expected, double actual);

} // namespace nsa::interpreter
