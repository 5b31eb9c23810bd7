// Dense and window attention exactly as the contract states them (spec.md 1, 2, 7), in fp64 on the
// inputs as they were rounded to their io type: plain loops to read, not to be fast.
// Checked against brute_force.h, which shares nothing with it but the argument types.
// Ownership: views borrow. Thread-safety: pure functions; `attend` starts its own threads.
#pragma once

#include "runtime/base/problem.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace nsa::reference {

// A strided tensor addressed by (batch, time, head, column). Packed tensors have batch stride 0; LSE has one column.
struct TensorView {
  const std::byte *data = nullptr;
  DType dtype = DType::kF32;
  int64_t batchStride = 0; // elements
  int64_t timeStride = 0;
  int64_t headStride = 0;

  double at(int64_t batch, int64_t time, int64_t head, int64_t column) const;
};

// One sequence of a batch: where its queries and keys begin in time, and its first row of the result.
struct Sequence {
  int64_t batch = 0;
  int64_t queryBegin = 0;
  int64_t queries = 0; // T_q
  int64_t keyBegin = 0;
  int64_t keys = 0; // T
  int64_t firstRow = 0;
};

std::vector<Sequence> denseSequences(int64_t batch, int64_t queries, int64_t keys);
// cu_seqlens of batch + 1 entries each, well-formed.
std::vector<Sequence> packedSequences(std::span<const int32_t> cuSeqlensQ, std::span<const int32_t> cuSeqlensK);

struct Attention {
  Operator op = Operator::kWindow;
  int64_t window = 512; // tokens, own one included; not read by dense
  double scale = 0;     // 0: 1/sqrt(qkDim)
  int64_t queryHeads = 0;
  int64_t kvHeads = 0;
  int64_t qkDim = 0;
  int64_t vDim = 0;
  TensorView q{}, k{}, v{};
  std::vector<Sequence> sequences{};

  int64_t rows() const; // queries of all sequences
  double effectiveScale() const;
};

struct AttentionResult {
  std::vector<double> out; // [rows, queryHeads, vDim]
  std::vector<double> lse; // [rows, queryHeads], natural logarithm
};

// threads = 0: one per core.
AttentionResult attend(const Attention &attention, int threads = 0);

} // namespace nsa::reference
