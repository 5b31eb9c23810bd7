// Products against plain loops, for every operand type, shape of slabs and warps, and with Inf and NaN on the right.
#include "copy.cuh"
#include "dot_annihilating.cuh"
#include "dot_float.cuh"
#include "guarded_matrix.h"
#include "sum_operand.cuh"

#include <gtest/gtest.h>

using namespace nsa;
using namespace nsa::test;

namespace {

template <typename T, int kRows, int kCols, int kDepth, int kWarps, bool kTransposed, bool kAnnihilating>
class Product {
public:
  static constexpr int kThreads = 32 * kWarps;
  GuardedMatrix<T> a{kRows, kDepth, kDepth, 1};
  GuardedMatrix<T> b{kTransposed ? kCols : kDepth, kTransposed ? kDepth : kCols, kTransposed ? kDepth : kCols, 2};
  GuardedMatrix<float> c{kRows, kCols, kCols, 3}, result{kRows, kCols, kCols, 4};

  // kSharedLeft: `a` is read from shared memory.
  template <bool kSharedLeft> void run() {
    View<T, 1> aView = a.view(false), bView = b.view(false);
    View<float, 1> cView = c.view(false), resultView = result.view(false);
    emulator::run({.threads = kThreads, .seed = 1}, [&] {
      using Right = SharedTile<T, kTransposed ? kCols : kDepth, kTransposed ? kDepth : kCols>;
      const SharedTile<T, kRows, kDepth> left(emulator::sharedMemory());
      const Right right(emulator::sharedMemory() + left.kBytes);
      load_tile<kThreads>(left, aView, a.columns, [&](int32 r) { return aView.at(r); });
      load_tile<kThreads>(right, bView, b.columns, [&](int32 r) { return bView.at(r); });
      __syncthreads();
      const auto acc =
          load_fragment<Fragment<float, kRows, kCols, kWarps>>(cView, kCols, [&](int32 r) { return cView.at(r); });
      const auto product = [&] {
        if constexpr (kSharedLeft) {
          return multiply(left, right, acc);
        } else {
          const auto registers =
              load_fragment<Fragment<T, kRows, kDepth, kWarps>>(aView, kDepth, [&](int32 r) { return aView.at(r); });
          return multiply(registers, right, acc);
        }
      }();
      store_tile(product, resultView, kCols, [&](int32 r) { return resultView.at(r); });
    });
  }

  template <typename A, typename B, typename Acc> static Acc multiply(const A &left, const B &right, const Acc &acc) {
    if constexpr (kTransposed && kAnnihilating)
      return dot_transposed_annihilating(left, right, acc);
    else if constexpr (kTransposed)
      return dot_transposed(left, right, acc);
    else if constexpr (kAnnihilating)
      return dot_annihilating(left, right, acc);
    else
      return dot(left, right, acc);
  }

  double expected(int row, int column) {
    double sum = c.value(row, column);
    for (int k = 0; k < kDepth; ++k) {
      double left = a.value(row, k), right = kTransposed ? b.value(column, k) : b.value(k, column);
      if (!kAnnihilating || left != 0)
        sum += left * right;
    }
    return sum;
  }

  // Products are exact in float for 16-bit types, so only the sums round: 2^-24 of the terms' size for each of them.
  void check() {
    for (int row = 0; row < kRows; ++row)
      for (int column = 0; column < kCols; ++column) {
        double want = expected(row, column), got = result.value(row, column);
        if (std::isfinite(want))
          ASSERT_NEAR(got, want, 1e-6 * kDepth) << row << ", " << column;
        else if (std::isnan(want))
          ASSERT_TRUE(std::isnan(got)) << row << ", " << column << ": " << got;
        else
          ASSERT_EQ(got, want) << row << ", " << column;
      }
  }
};

template <typename T, int kRows, int kCols, int kDepth, int kWarps, bool kTransposed> void checkPlain() {
  Product<T, kRows, kCols, kDepth, kWarps, kTransposed, false> product;
  product.template run<false>();
  product.check();
  product.template run<true>();
  product.check();
}

TEST(Dot, Bf16) {
  checkPlain<bf16, 16, 16, 16, 1, false>();
  checkPlain<bf16, 32, 48, 80, 2, false>();
  checkPlain<bf16, 64, 32, 32, 2, false>(); // two slabs in a warp
  checkPlain<bf16, 32, 48, 80, 2, true>();
  checkPlain<bf16, 64, 32, 128, 2, true>();
}

TEST(Dot, F16) {
  checkPlain<f16, 32, 16, 48, 2, false>();
  checkPlain<f16, 32, 64, 16, 1, true>();
}

TEST(Dot, Float) {
  checkPlain<float, 16, 8, 8, 1, false>();
  checkPlain<float, 32, 40, 24, 2, false>();
  checkPlain<float, 32, 16, 72, 1, true>();
  checkPlain<float, 32, 64, 32, 2, true>();
}

// Zeros of `a` face Inf and NaN of `b`; other elements of `a`, of both signs, face some of them too.
template <typename T, int kWarps, bool kTransposed> void checkAnnihilating() {
  constexpr int kRows = 32, kCols = 32, kDepth = 32;
  Product<T, kRows, kCols, kDepth, kWarps, kTransposed, true> product;
  for (int row = 0; row < kRows; ++row)
    for (int k = 0; k < kDepth; ++k)
      if (k % 4 == 1 || (k % 4 == 2 && row % 3 != 0))
        product.a.at(row, k) = to<T>(k % 8 < 4 ? 0.0f : -0.0f);
  auto b = [&](int k, int column) -> T & { return kTransposed ? product.b.at(column, k) : product.b.at(k, column); };
  for (int column = 0; column < kCols; ++column) {
    b(1, column) = to<T>(NAN);
    b(5, column) = to<T>(INFINITY);
    b(9, column) = to<T>(-INFINITY);
    if (column % 4 != 0)
      b(column % 4 == 1 ? 2 : 6, column) = to<T>(column % 4 == 3 ? -INFINITY : INFINITY);
    if (column % 8 == 7)
      b(10, column) = to<T>(NAN);
  }
  product.template run<false>();
  product.check();
  if constexpr (kSameType<T, float>) {
    product.template run<true>();
    product.check();
  }
}

TEST(DotAnnihilating, ZeroTimesInfOrNanIsZeroAndAllElseIsAsEver) {
  checkAnnihilating<bf16, 2, false>();
  checkAnnihilating<bf16, 1, false>();
  checkAnnihilating<bf16, 2, true>();
  checkAnnihilating<f16, 1, false>();
  checkAnnihilating<float, 2, false>();
  checkAnnihilating<float, 1, true>();
}

// Elsewhere than `where` it is the plain product: NaN reaches all that its row meets.
TEST(DotAnnihilating, IsPlainWhereItMayBe) {
  GuardedMatrix<bf16> a(16, 16, 16, 1), b(16, 16, 16, 2);
  GuardedMatrix<float> result(16, 16, 16, 3);
  for (int row = 0; row < 16; ++row)
    a.at(row, 3) = to<bf16>(0.0f);
  b.at(3, 5) = to<bf16>(NAN);
  View<bf16, 1> aView = a.view(false), bView = b.view(false);
  View<float, 1> resultView = result.view(false);
  for (const bool where : {false, true}) {
    emulator::run({.threads = 32}, [&] {
      const SharedTile<bf16, 16, 16> left(emulator::sharedMemory()), right(emulator::sharedMemory() + left.kBytes);
      load_tile<32>(left, aView, 16, [&](int32 r) { return aView.at(r); });
      load_tile<32>(right, bView, 16, [&](int32 r) { return bView.at(r); });
      __syncthreads();
      const auto registers = load_operand<Fragment<bf16, 16, 16, 1>>(left);
      const auto product = dot_annihilating(registers, right, splat<Fragment<float, 16, 16, 1>>(0.0f), where);
      store_tile(product, resultView, 16, [&](int32 r) { return resultView.at(r); });
    });
    for (int row = 0; row < 16; ++row)
      for (int column = 0; column < 16; ++column)
        EXPECT_EQ(std::isnan(result.value(row, column)), !where && column == 5) << row << ", " << column;
  }
}

TEST(DotAnnihilating, EqualsThePlainProductOfFiniteNumbers) {
  Product<bf16, 32, 32, 32, 2, false, true> annihilating;
  Product<bf16, 32, 32, 32, 2, false, false> plain;
  annihilating.run<false>();
  plain.run<false>();
  for (int row = 0; row < 32; ++row)
    for (int column = 0; column < 32; ++column)
      EXPECT_EQ(annihilating.result.value(row, column), plain.result.value(row, column));
}

// What meets zeros only leaves no trace, not in the last bit: the sums are made in the same order.
TEST(DotAnnihilating, WhatMeetsZerosOnlyChangesNoBit) {
  Product<f16, 32, 32, 32, 2, false, true> spoilt, clean;
  for (auto *product : {&spoilt, &clean})
    for (int row = 0; row < 32; ++row)
      product->a.at(row, 7) = to<f16>(row % 2 != 0 ? 0.0f : 1.0f);
  for (int column = 0; column < 32; ++column) {
    clean.b.at(7, column) = to<f16>(0.0f);
    spoilt.b.at(7, column) = to<f16>(column % 2 != 0 ? INFINITY : NAN);
  }
  clean.run<false>();
  spoilt.run<false>();
  for (int row = 0; row < 32; ++row)
    for (int column = 0; column < 32; ++column)
      if (row % 2 != 0)
        EXPECT_EQ(spoilt.result.value(row, column), clean.result.value(row, column)) << row << ", " << column;
      else
        EXPECT_FALSE(std::isfinite(spoilt.result.value(row, column))) << row << ", " << column;
}

template <typename T, int kRows, int kDepth, int kWarps> void checkSums() {
  GuardedMatrix<T> source(kRows, kDepth, kDepth, 1);
  GuardedMatrix<float> sums(kRows, 1, 1, 2);
  const View<T, 1> from = source.view(false);
  const View<float, 1> to = sums.view(false);
  emulator::run({.threads = 32 * kWarps}, [&] {
    const auto x = load_fragment<Fragment<T, kRows, kDepth, kWarps>>(from, kDepth, [&](int32 r) { return from.at(r); });
    store_rows(sum_operand(x), to, [&](int32 r) { return to.at(r); });
  });
  for (int row = 0; row < kRows; ++row) {
    double sum = 0;
    for (int column = 0; column < kDepth; ++column)
      sum += source.value(row, column);
    EXPECT_NEAR(sums.value(row, 0), sum, 1e-4) << "row " << row;
  }
}

TEST(SumOperand, IsTheSumOfEachRow) {
  checkSums<bf16, 16, 16, 1>();
  checkSums<f16, 64, 48, 2>();
  checkSums<bf16, 32, 128, 1>();
}

} // namespace
