#include "compiler/cpu/MathExpansion.h"

#include <array>
#include <cmath>
#include <limits>
#include <numbers>

namespace nsa::cpu {

using namespace mlir;

namespace {

Type likeWith(Type shape, Type element) {
  if (auto vector = dyn_cast<VectorType>(shape))
    return VectorType::get(vector.getShape(), element);
  return element;
}

Value compare(CpuBuilder &b, arith::CmpFPredicate predicate, Value x, double bound) {
  return arith::CmpFOp::create(b, predicate, x, b.real(x.getType(), bound));
}

Value select(CpuBuilder &b, Value condition, Value yes, Value no) {
  return arith::SelectOp::create(b, condition, yes, no);
}

Value horner(CpuBuilder &b, Value x, ArrayRef<double> highestFirst) {
  Value sum = b.real(x.getType(), highestFirst.front());
  for (double coefficient : highestFirst.drop_front())
    sum = b.fma(sum, x, b.real(x.getType(), coefficient));
  return sum;
}

} // namespace

Value expandExp2(CpuBuilder &b, Value x) {
  Type type = x.getType();
  const bool isDouble = getElementTypeOrSelf(type).isF64();
  Type bits = likeWith(type, isDouble ? Type(b.getI64Type()) : b.getI32Type());
  const double most = isDouble ? 1024.0 : 128.0, least = isDouble ? -1022.0 : -126.0;
  // Each select is written so that it becomes one vmaxps or vminps. These return their second operand for NaN.
  Value upper = b.real(type, most);
  Value clamped = select(b, compare(b, arith::CmpFPredicate::OGT, x, most), upper, x);
  // Adding 1.5 * 2^23 (f64: 1.5 * 2^52) rounds to the nearest integer, ties to even, and leaves the integer in the low
  // bits of the sum.
  Value magic = b.real(type, isDouble ? 0x1.8p52 : 0x1.8p23);
  Value shifted = arith::AddFOp::create(b, clamped, magic);
  Value rounded = arith::SubFOp::create(b, shifted, magic);
  Value fraction = arith::SubFOp::create(b, clamped, rounded); // in [-1/2, 1/2], exact
  // (2^f - 1) / f interpolated at the Chebyshev nodes of degree 5; relative error of the result below 1e-8.
  static constexpr double kCoefficients[] = {
      1.5453162945e-04, 1.3390863365e-03, 9.6180825573e-03, 5.5503571142e-02, 2.4022650761e-01, 6.9314718803e-01, 1.0};
  // The Taylor series of degree 13; its first term that is left out is below 1e-17.
  std::array<double, 14> series = {};
  double term = 1;
  for (size_t i = 0; i < series.size(); ++i, term *= std::numbers::ln2 / static_cast<double>(i))
    series[series.size() - 1 - i] = term;
  Value power = isDouble ? horner(b, fraction, series) : horner(b, fraction, kCoefficients);
  // An integer addition to the exponent multiplies by 2^n. With the greatest n and a power below 1 the result is still
  // finite, which is right.
  Value exponent =
      arith::ShLIOp::create(b, LLVM::BitcastOp::create(b, bits, shifted), b.integer(bits, isDouble ? 52 : 23));
  Value sum = arith::AddIOp::create(b, LLVM::BitcastOp::create(b, bits, power), exponent);
  Value result = LLVM::BitcastOp::create(b, type, sum);
  Value zeroOrNan = select(b, compare(b, arith::CmpFPredicate::OLT, x, 0.0), b.real(type, 0.0), x);
  return select(b, compare(b, arith::CmpFPredicate::OGE, x, least), result, zeroOrNan);
}

Value expandLog2(CpuBuilder &b, Value x) {
  Type type = x.getType();
  Type bits = likeWith(type, b.getI32Type());
  const double infinity = std::numeric_limits<double>::infinity();
  Value isTiny = compare(b, arith::CmpFPredicate::OLT, x, 0x1p-126);
  Value scaled = arith::MulFOp::create(b, x, b.real(type, 0x1p23));
  Value normal = select(b, isTiny, scaled, x);
  Value adjust = select(b, isTiny, b.real(type, -23.0), b.real(type, 0.0));
  // x = 2^e m with m in [sqrt(1/2), sqrt(2)): subtracting the bits of sqrt(1/2) carries into e at the right place.
  Value raw = LLVM::BitcastOp::create(b, bits, normal);
  Value fromRoot = arith::SubIOp::create(b, raw, b.integer(bits, 0x3f3504f3));
  Value exponent = arith::ShRSIOp::create(b, fromRoot, b.integer(bits, 23));
  Value mantissaBits = arith::SubIOp::create(b, raw, arith::ShLIOp::create(b, exponent, b.integer(bits, 23)));
  Value mantissa = LLVM::BitcastOp::create(b, type, mantissaBits);
  // log2(m) = 2/ln(2) atanh(s), s = (m-1)/(m+1), |s| < 0.172. With five terms the error is 1e-9.
  Value s = arith::DivFOp::create(b, arith::SubFOp::create(b, mantissa, b.real(type, 1.0)),
                                  arith::AddFOp::create(b, mantissa, b.real(type, 1.0)));
  Value square = arith::MulFOp::create(b, s, s);
  const double twoOverLn2 = 2.0 / std::log(2.0);
  const double terms[] = {twoOverLn2 / 9, twoOverLn2 / 7, twoOverLn2 / 5, twoOverLn2 / 3, twoOverLn2};
  Value whole = arith::AddFOp::create(b, arith::SIToFPOp::create(b, type, exponent), adjust);
  Value result = b.fma(s, horner(b, square, terms), whole);
  Value nan = b.real(type, std::numeric_limits<double>::quiet_NaN());
  Value special = select(b, compare(b, arith::CmpFPredicate::OEQ, x, 0.0), b.real(type, -infinity),
                         select(b, compare(b, arith::CmpFPredicate::OLT, x, 0.0), nan, x));
  Value ordinary = arith::AndIOp::create(b, compare(b, arith::CmpFPredicate::OGT, x, 0.0),
                                         compare(b, arith::CmpFPredicate::OLT, x, infinity));
  return select(b, ordinary, result, special);
}

Value expandErf(CpuBuilder &b, Value x) {
  Type type = x.getType();
  Type bits = likeWith(type, b.getI32Type());
  Value magnitude = LLVM::FAbsOp::create(b, type, x);
  // Both polynomials are interpolated at Chebyshev nodes. Below 1, erf(x) / x in x^2: relative error 2e-9.
  static constexpr double kSmall[] = {7.875875063e-05, -8.016864287e-04, 5.189087423e-03, -2.685421201e-02,
                                      1.128359472e-01, -3.761262667e-01, 1.128379166e+00};
  Value small = arith::MulFOp::create(b, x, horner(b, arith::MulFOp::create(b, x, x), kSmall));
  // From 1 to 4, log2(1 - erf(x)) in x: relative error of the result 7e-8. Beyond 4 the result rounds to 1.
  static constexpr double kLarge[] = {-1.914797057e-05, 4.572434706e-04,  -4.951836316e-03, 3.261179281e-02,
                                      -1.490031562e-01, -9.220859228e-01, -1.624321189e+00, -1.104956929e-03};
  Value most = b.real(type, 4.0);
  Value clamped = select(b, compare(b, arith::CmpFPredicate::OGT, magnitude, 4.0), most, magnitude);
  Value rest = expandExp2(b, horner(b, clamped, kLarge));
  Value large = arith::SubFOp::create(b, b.real(type, 1.0), rest);
  Value sign = arith::AndIOp::create(b, LLVM::BitcastOp::create(b, bits, x), b.integer(bits, int64_t{-1} << 31));
  Value signedLarge =
      LLVM::BitcastOp::create(b, type, arith::OrIOp::create(b, LLVM::BitcastOp::create(b, bits, large), sign));
  return select(b, compare(b, arith::CmpFPredicate::OLT, magnitude, 1.0), small, signedLarge);
}

Value encode16(CpuBuilder &b, Value x, Type type) {
  Type half = likeWith(x.getType(), b.getI16Type());
  if (type.isF16()) {
    // This becomes vcvtps2ph. Every feature level has F16C.
    Value rounded = arith::TruncFOp::create(b, likeWith(x.getType(), type), x);
    return LLVM::BitcastOp::create(b, half, rounded);
  }
  assert(type.isBF16());
  // The conversion is done with integers: the instruction of AVX512-BF16 flushes subnormals, and not every machine has
  // it.
  Type word = likeWith(x.getType(), b.getI32Type());
  Value bits = LLVM::BitcastOp::create(b, word, x);
  Value upper = arith::ShRUIOp::create(b, bits, b.integer(word, 16));
  Value isOdd = arith::AndIOp::create(b, upper, b.integer(word, 1));
  Value biased = b.add(b.add(bits, isOdd), b.integer(word, 0x7fff));
  Value rounded = arith::ShRUIOp::create(b, biased, b.integer(word, 16));
  Value quiet = arith::OrIOp::create(b, upper, b.integer(word, 0x40));
  Value isNan = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, x, x);
  return arith::TruncIOp::create(b, half, select(b, isNan, quiet, rounded));
}

Value decode16(CpuBuilder &b, Value bits, Type type) {
  Type single = likeWith(bits.getType(), b.getF32Type());
  if (type.isF16()) {
    Value half = LLVM::BitcastOp::create(b, likeWith(bits.getType(), type), bits);
    return arith::ExtFOp::create(b, single, half);
  }
  assert(type.isBF16());
  Type word = likeWith(bits.getType(), b.getI32Type());
  Value wide = arith::ShLIOp::create(b, arith::ExtUIOp::create(b, word, bits), b.integer(word, 16));
  return LLVM::BitcastOp::create(b, single, wide);
}

} // namespace nsa::cpu
