// Products with a left operand that was computed and written to shared memory, plain and transposed; and products in
// which a zero annihilates and that leave their right operand as it is.
#include "copy.cuh"
#include "dot_keeping.cuh"
#include "guarded_matrix.h"
#include "write_tile.cuh"

#include <gtest/gtest.h>

#include <type_traits>

using namespace nsa;
using namespace nsa::test;

namespace {

enum class Left { kRegisters, kShared, kTransposed };

// acc + a b with `a` of kRows x kDepth. A transposed `a` is held as kDepth x kRows.
template <typename T, int kRows, int kCols, int kDepth, int kWarps, Left kLeft, bool kRightTransposed> class Product {
public:
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kLeftRows = kLeft == Left::kTransposed ? kDepth : kRows;
  static constexpr int kLeftCols = kLeft == Left::kTransposed ? kRows : kDepth;
  static constexpr int kRightRows = kRightTransposed ? kCols : kDepth;
  static constexpr int kRightCols = kRightTransposed ? kDepth : kCols;
  GuardedMatrix<T> left{kLeftRows, kLeftCols, kLeftCols, 1}, right{kRightRows, kRightCols, kRightCols, 2};
  GuardedMatrix<T> rightAfter{kRightRows, kRightCols, kRightCols, 3};
  GuardedMatrix<float> acc{kRows, kCols, kCols, 4}, result{kRows, kCols, kCols, 5};

  T &a(int row, int k) { return kLeft == Left::kTransposed ? left.at(k, row) : left.at(row, k); }
  T &b(int k, int column) { return kRightTransposed ? right.at(column, k) : right.at(k, column); }

  template <bool kAnnihilates> void run(bool where = true) {
    View<T, 1> leftView = left.view(false), rightView = right.view(false), afterView = rightAfter.view(false);
    View<float, 1> accView = acc.view(false), resultView = result.view(false);
    emulator::run({.threads = kThreads, .seed = 1}, [&] {
      const SharedTile<T, kLeftRows, kLeftCols> leftTile(emulator::sharedMemory());
      const SharedTile<T, kRightRows, kRightCols> rightTile(emulator::sharedMemory() + leftTile.kBytes);
      load_tile<kThreads>(rightTile, rightView, kRightCols, [&](int32 r) { return rightView.at(r); });
      const auto registers = load_fragment<Fragment<T, kLeftRows, kLeftCols, kWarps>>(
          leftView, kLeftCols, [&](int32 r) { return leftView.at(r); });
      write_tile(registers, leftTile);
      __syncthreads();
      const auto sums =
          load_fragment<Fragment<float, kRows, kCols, kWarps>>(accView, kCols, [&](int32 r) { return accView.at(r); });
      const auto product = [&] {
        if constexpr (kLeft == Left::kTransposed)
          return multiply<kAnnihilates>(transposed(leftTile), rightTile, sums, where);
        else if constexpr (kLeft == Left::kShared)
          return multiply<kAnnihilates>(leftTile, rightTile, sums, where);
        else
          return multiply<kAnnihilates>(registers, rightTile, sums, where);
      }();
      store_tile(product, resultView, kCols, [&](int32 r) { return resultView.at(r); });
      __syncthreads();
      for (int32 index = threadIdx.x; index < kRightRows * kRightCols; index += kThreads) {
        const int32 row = index / kRightCols, column = index % kRightCols;
        constexpr int32 kChunk = SharedTile<T, kRightRows, kRightCols>::kChunkElements;
        afterView.data[index] =
            reinterpret_cast<const T *>(rightTile.chunk(row, column / kChunk).words)[column % kChunk];
      }
    });
  }

  template <bool kAnnihilates, typename A, typename B, typename Acc>
  static Acc multiply(const A &a, const B &b, const Acc &sums, bool where) {
    if constexpr (kAnnihilates && kSameType<T, float> && kRightTransposed)
      return dot_transposed_annihilating(a, b, sums, where);
    else if constexpr (kAnnihilates && kSameType<T, float>)
      return dot_annihilating(a, b, sums, where);
    else if constexpr (kAnnihilates && kRightTransposed)
      return dot_transposed_keeping(a, b, sums, where);
    else if constexpr (kAnnihilates)
      return dot_keeping(a, b, sums, where);
    else if constexpr (kRightTransposed)
      return dot_transposed(a, b, sums);
    else
      return dot(a, b, sums);
  }

  void check(bool annihilates) {
    for (int row = 0; row < kRows; ++row)
      for (int column = 0; column < kCols; ++column) {
        double want = acc.value(row, column);
        for (int k = 0; k < kDepth; ++k)
          if (!annihilates || to_float(a(row, k)) != 0)
            want += double(to_float(a(row, k))) * to_float(b(k, column));
        const double got = result.value(row, column);
        if (std::isfinite(want))
          ASSERT_NEAR(got, want, 1e-6 * kDepth) << row << ", " << column;
        else if (std::isnan(want))
          ASSERT_TRUE(std::isnan(got)) << row << ", " << column << ": " << got;
        else
          ASSERT_EQ(got, want) << row << ", " << column;
      }
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>;
    for (int row = 0; row < kRightRows; ++row)
      for (int column = 0; column < kRightCols; ++column)
        ASSERT_EQ(emulator::bits<Bits>(rightAfter.at(row, column)), emulator::bits<Bits>(right.at(row, column)))
            << row << ", " << column;
  }

  void checkPlain() {
    run<false>();
    check(false);
  }

  // Zeros of `a` face Inf and NaN of `b`; other elements of `a`, of both signs, face some of them too.
  void checkAnnihilating() {
    for (int row = 0; row < kRows; ++row)
      for (int k = 0; k < kDepth; ++k)
        if (k % 4 == 1 || (k % 4 == 2 && row % 3 != 0))
          a(row, k) = to<T>(k % 8 < 4 ? 0.0f : -0.0f);
    run<true>(); // of finite numbers
    check(true);
    for (int column = 0; column < kCols; ++column) {
      b(1, column) = to<T>(NAN);
      b(5, column) = to<T>(column % 2 != 0 ? INFINITY : -INFINITY);
      if (column % 4 != 0)
        b(column % 4 == 1 ? 2 : 6, column) = to<T>(column % 4 == 3 ? -INFINITY : INFINITY);
    }
    run<true>();
    check(true);
    run<true>(/*where=*/false);
    check(false);
  }
};

TEST(SharedLeft, AComputedTileIsTransposed) {
  Product<bf16, 16, 16, 16, 1, Left::kTransposed, false>().checkPlain();
  Product<bf16, 64, 32, 48, 1, Left::kTransposed, false>().checkPlain(); // four slabs in the warp
  Product<bf16, 96, 48, 32, 2, Left::kTransposed, false>().checkPlain(); // three slabs in a warp
  Product<f16, 64, 32, 64, 4, Left::kTransposed, true>().checkPlain();
  Product<float, 32, 24, 32, 2, Left::kTransposed, false>().checkPlain();
  Product<float, 64, 16, 32, 2, Left::kTransposed, true>().checkPlain();
}

TEST(SharedLeft, AComputedTileIsReadAsItIs) {
  Product<bf16, 32, 32, 48, 2, Left::kShared, false>().checkPlain();
  Product<float, 32, 24, 16, 1, Left::kShared, true>().checkPlain();
}

TEST(SharedLeft, ZerosAnnihilateAndTheRightSideStays) {
  Product<bf16, 64, 48, 32, 2, Left::kTransposed, false>().checkAnnihilating();
  Product<f16, 32, 32, 32, 1, Left::kTransposed, true>().checkAnnihilating();
  Product<bf16, 32, 16, 48, 2, Left::kShared, false>().checkAnnihilating();
  Product<bf16, 64, 32, 32, 2, Left::kRegisters, false>().checkAnnihilating();
  Product<f16, 32, 64, 32, 1, Left::kRegisters, true>().checkAnnihilating();
  Product<float, 32, 16, 32, 2, Left::kTransposed, false>().checkAnnihilating();
}

// What meets zeros only leaves no trace, not in the last bit: the sums are made in the same order as those of a finite
// right operand.
TEST(SharedLeft, WhatMeetsZerosOnlyChangesNoBit) {
  Product<bf16, 32, 32, 32, 2, Left::kTransposed, false> spoilt, clean;
  for (auto *product : {&spoilt, &clean})
    for (int row = 0; row < 32; ++row)
      product->a(row, 7) = to<bf16>(0.0f);
  for (int column = 0; column < 32; ++column) {
    clean.b(7, column) = to<bf16>(0.0f);
    spoilt.b(7, column) = to<bf16>(column % 2 != 0 ? INFINITY : NAN);
  }
  clean.run<true>();
  spoilt.run<true>();
  for (int row = 0; row < 32; ++row)
    for (int column = 0; column < 32; ++column)
      EXPECT_EQ(spoilt.result.value(row, column), clean.result.value(row, column)) << row << ", " << column;
}

} // namespace
