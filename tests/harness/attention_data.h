// The tensors of one case in poisoned memory. Every byte that belongs to no element holds NaN before the run, and in
// the outputs it must still hold NaN afterwards.
// Ownership: AttentionData owns the host memory.
// Thread-safety: values.
#pragma once

#include "nsa/nsa.h"
#include "tests/harness/attention_case.h"
#include "tools/reference/attention.h"

#include <array>
#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace nsa::test {

// A tensor [batch, time, head, column] (for the LSE without columns) in its own memory.
class PlacedTensor {
public:
  PlacedTensor() = default;
  // With 0 columns there is one value for each (batch, time, head). `packed` leaves the batch out of the C ABI's shape.
  PlacedTensor(DType dtype, bool packed, std::array<int64_t, 4> extents, Placement placement);

  DType dtype() const { return type; }
  std::vector<std::byte> &bytes() { return memory; }
  const std::vector<std::byte> &bytes() const { return memory; }
  int64_t extent(int dimension) const { return extents[static_cast<size_t>(dimension)]; }

  double get(int64_t batch, int64_t time, int64_t head, int64_t column) const;
  void set(int64_t batch, int64_t time, int64_t head, int64_t column, float value);
  // Sets all columns of one row.
  void fillRow(int64_t batch, int64_t time, int64_t head, float value);
  void poison(); // sets every byte to NaN
  // How many bytes belong to no element and are no longer poison.
  int64_t strayBytes() const;

  reference::TensorView view() const;
  // `device` is the address to which bytes() were copied.
  nsa_tensor apiTensor(void *device) const;

private:
  int64_t offset(int64_t batch, int64_t time, int64_t head, int64_t column) const;

  DType type = DType::kF32;
  bool packed = false;
  bool hasColumns = true;
  std::array<int64_t, 4> extents{};
  std::array<int64_t, 3> strides{}; // elements
  int64_t base = 0;
  std::vector<std::byte> memory;
};

struct AttentionData {
  AttentionCase shape;
  PlacedTensor q, k, v, out, lse;
  std::vector<int32_t> cuSeqlensQ, cuSeqlensK; // packed layout only

  // Draws unit-normal inputs. Keys and values that no query of their sequence may attend stay NaN, and so do unused
  // rows.
  static AttentionData draw(const AttentionCase &shape, std::mt19937_64 &random);
  reference::Attention problem() const;
};

} // namespace nsa::test
