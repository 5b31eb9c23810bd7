// Twin of templates/device/ptx_matrix.cuh, after PTX ISA 9.7.14 ("Matrix Fragments for mma.m16n8k16", "ldmatrix").
#pragma once

#include "ptx_convert.cuh"
#include "simulator.h"
#include "types.cuh"

namespace nsa {

inline void load_matrices(const char *operation, uint32 (&result)[4], uint32 address, bool transposed) {
  struct Part {
    uint32 address;
    uint32 *result;
  } mine{address, result};
  simulator::check(address % 16 == 0 && address + 16 <= simulator::kSharedBytes, "ldmatrix from a bad shared address");
  simulator::meetWarp(operation, &mine, [transposed](void *const *lanes) {
    auto part = [&](int lane) { return static_cast<Part *>(lanes[lane]); };
    for (int matrix = 0; matrix < 4; ++matrix) {
      auto element = [&](int row, int column) {
        uint16 value;
        std::memcpy(&value, shared_memory + part(8 * matrix + row)->address + 2 * column, sizeof value);
        return value;
      };
      for (int lane = 0; lane < 32; ++lane) {
        int row = lane / 4, column = lane % 4 * 2;
        uint16 low = transposed ? element(column, row) : element(row, column);
        uint16 high = transposed ? element(column + 1, row) : element(row, column + 1);
        part(lane)->result[matrix] = low | static_cast<uint32>(high) << 16;
      }
    }
  });
}

inline void ldmatrix_x4(uint32 (&result)[4], uint32 address) { load_matrices("ldmatrix", result, address, false); }
inline void ldmatrix_x4_transposed(uint32 (&result)[4], uint32 address) {
  load_matrices("ldmatrix.trans", result, address, true);
}

template <typename T> void mma_m16n8k16(T, float (&c)[4], const uint32 (&a)[4], uint32 b0, uint32 b1) {
  struct Part {
    float *c;
    const uint32 *a;
    uint32 b[2];
  } mine{c, a, {b0, b1}};
  simulator::meetWarp("mma", &mine, [](void *const *lanes) {
    auto part = [&](int lane) { return static_cast<Part *>(lanes[lane]); };
    auto half = [](uint32 word, int index) { return to_float(T{static_cast<uint16>(word >> (16 * index))}); };
    float a[16][16], b[16][8];
    for (int lane = 0; lane < 32; ++lane) {
      int group = lane / 4, member = lane % 4;
      for (int i = 0; i < 8; ++i)
        a[group + (i / 2 % 2) * 8][member * 2 + i % 2 + (i / 4) * 8] = half(part(lane)->a[i / 2], i % 2);
      for (int i = 0; i < 4; ++i)
        b[member * 2 + i % 2 + (i / 2) * 8][group] = half(part(lane)->b[i / 2], i % 2);
    }
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < 4; ++i) {
        int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        float sum = part(lane)->c[i];
        for (int k = 0; k < 16; ++k)
          sum += a[row][k] * b[k][column];
        part(lane)->c[i] = sum;
      }
  });
}

} // namespace nsa
