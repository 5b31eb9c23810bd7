// The attention layer of this example, and what is planned for it.
#pragma once

#include <nsa/nsa.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace example {

constexpr std::int32_t kHeads = 8, kKvHeads = 2, kDim = 64;
constexpr std::int32_t kWindow = 64, kCmpBlock = 32, kCmpStride = 16, kSelBlock = 64, kSelCount = 8;
constexpr std::int32_t kBranches = 3;
constexpr std::int64_t kBatch = 2; // sequences that are decoded together

// Elements of one token's row.
constexpr std::size_t kQueryRow = std::size_t{kHeads} * kDim, kKeyRow = std::size_t{kKvHeads} * kDim;
constexpr std::size_t kGateRow = std::size_t{kHeads} * kBranches;
constexpr std::size_t kListRow = std::size_t{kKvHeads} * kSelCount;

// The sequences of a batch differ in length, so new tokens come packed: [total, heads, dim] and offsets.
inline nsa::Spec layerSpec(nsa_op op, std::int32_t pageSize) {
  nsa::Spec spec;
  spec.op = op;
  spec.dtype = NSA_BF16;
  spec.layout = NSA_LAYOUT_PACKED;
  spec.queryHeads = kHeads;
  spec.kvHeads = kKvHeads;
  spec.qkDim = spec.vDim = kDim;
  spec.window = kWindow;
  spec.cmpBlock = kCmpBlock;
  spec.cmpStride = kCmpStride;
  spec.selBlock = kSelBlock;
  spec.selCount = kSelCount;
  spec.gate = NSA_GATE_SIGMOID;
  spec.pageSize = pageSize;
  return spec;
}

// A tensor and what it is to the operator.
struct NamedTensor {
  nsa_name name;
  nsa::Tensor tensor;
};

inline std::vector<nsa::Binding> bindingsOf(const std::vector<NamedTensor> &tensors) {
  std::vector<nsa::Binding> bindings;
  for (const NamedTensor &named : tensors)
    bindings.push_back({named.name, named.tensor});
  return bindings;
}

} // namespace example
