// Twin of templates/device/ptx_matrix.cuh, after the PTX ISA ("Matrix Fragments for mma.m16n8k16", "ldmatrix",
// "movmatrix").
#pragma once

#include "ptx_convert.cuh"
#include "types.cuh"

namespace nsa {

struct MatrixLoad {
  const unsigned char *row;
  uint32 *result;
};

template <bool kTransposed> NSA_DEVICE void load_matrices(uint32 (&result)[4], uint32 address) {
  emulator::check(address % 16 == 0, "ldmatrix from an unaligned address");
  MatrixLoad mine{emulator::sharedPointer(address, 16), result};
  emulator::performTogether(kTransposed ? "ldmatrix.trans" : "ldmatrix", &mine, [](void **lanes) {
    for (int32 matrix = 0; matrix < 4; ++matrix) {
      uint16 rows[8][8];
      for (int32 row = 0; row < 8; ++row)
        std::memcpy(rows[row], static_cast<MatrixLoad *>(lanes[8 * matrix + row])->row, 16);
      for (int32 lane = 0; lane < kWarpSize; ++lane) {
        const int32 row = lane / 4, column = lane % 4 * 2;
        const uint16 low = kTransposed ? rows[column][row] : rows[row][column];
        const uint16 high = kTransposed ? rows[column + 1][row] : rows[row][column + 1];
        static_cast<MatrixLoad *>(lanes[lane])->result[matrix] = low | static_cast<uint32>(high) << 16;
      }
    }
  });
}
NSA_DEVICE void ldmatrix_x4(uint32 (&result)[4], uint32 address) { load_matrices<false>(result, address); }
NSA_DEVICE void ldmatrix_x4_transposed(uint32 (&result)[4], uint32 address) { load_matrices<true>(result, address); }

struct MatrixMove {
  uint32 word;
  uint32 result;
};

NSA_DEVICE uint32 transpose_matrix(uint32 matrix) {
  MatrixMove mine{matrix, 0};
  emulator::performTogether("movmatrix", &mine, [](void **lanes) {
    const auto element = [&](int32 row, int32 column) {
      return static_cast<MatrixMove *>(lanes[row * 4 + column / 2])->word >> (16 * (column % 2)) & 0xffff;
    };
    for (int32 lane = 0; lane < kWarpSize; ++lane) {
      const int32 row = lane / 4, column = lane % 4 * 2;
      static_cast<MatrixMove *>(lanes[lane])->result = element(column, row) | element(column + 1, row) << 16;
    }
  });
  return mine.result;
}

struct MatrixProduct {
  float *c;
  const uint32 *a;
  uint32 b[2];
};

template <typename T> NSA_DEVICE void mma_m16n8k16(T, float (&c)[4], const uint32 (&a)[4], uint32 b0, uint32 b1) {
  MatrixProduct mine{c, a, {b0, b1}};
  emulator::performTogether("mma", &mine, [](void **lanes) {
    const auto part = [&](int32 lane) { return static_cast<MatrixProduct *>(lanes[lane]); };
    const auto half = [](uint32 word, int32 index) { return to_float(T{static_cast<uint16>(word >> (16 * index))}); };
    float left[16][16], right[16][8];
    for (int32 lane = 0; lane < kWarpSize; ++lane) {
      const int32 group = lane / 4, member = lane % 4;
      for (int32 i = 0; i < 8; ++i)
        left[group + i / 2 % 2 * 8][member * 2 + i % 2 + i / 4 * 8] = half(part(lane)->a[i / 2], i % 2);
      for (int32 i = 0; i < 4; ++i)
        right[member * 2 + i % 2 + i / 2 * 8][group] = half(part(lane)->b[i / 2], i % 2);
    }
    for (int32 row = 0; row < 16; ++row) {
      float sums[8] = {};
      for (int32 k = 0; k < 16; ++k)
        for (int32 column = 0; column < 8; ++column)
          sums[column] += left[row][k] * right[k][column];
      for (int32 column = 0; column < 8; ++column)
        part(row % 8 * 4 + column / 2)->c[row / 8 * 2 + column % 2] += sums[column];
    }
  });
}

} // namespace nsa
